/* What is asked of a call before it is made: how operands broadcast, and whether they overlap. */
#include <stdlib.h>

#include "overlap.h"
#include "where_abi.h"

/* Sets the strides for the axes of a call of something with items of so many bytes. It is always
 * inline, because a call of it takes a third of its time. */
__attribute__((always_inline)) static inline int spread(const te_select_where_call* call,
                                                        int32_t ndim, const int64_t* shape,
                                                        const int64_t* strides, int64_t item,
                                                        int64_t* spread_strides) {
  if (ndim < 0 || ndim > call->ndim) return 0;
  int32_t before = call->ndim - ndim;
  int64_t compact = item;
  for (int32_t i = 0; i < before; ++i) spread_strides[i] = 0;
  for (int32_t i = ndim - 1; i >= 0; --i) {
    if (shape[i] == 1) {
      spread_strides[before + i] = 0;
    } else if (shape[i] == call->shape[before + i]) {
      spread_strides[before + i] = strides ? strides[i] : compact;
    } else {
      return 0;
    }
    compact = (int64_t)((uint64_t)compact * (uint64_t)shape[i]); /* of too many bytes it wraps */
  }
  return 1;
}

/* A protected function is exported, and calls from here do not pass the PLT. */
__attribute__((visibility("protected"))) int te_select_broadcast(te_select_where_call* call,
                                                                 int operand, int32_t ndim,
                                                                 const int64_t* shape,
                                                                 const int64_t* strides) {
  int is_call = call->ndim <= TE_SELECT_WHERE_RANK && operand >= 0 && operand < TE_SELECT_OPERANDS;
  if (!is_call) return 0;
  int64_t item = te_select_item(operand, call->width);
  return spread(call, ndim, shape, strides, item, call->strides[operand]);
}

int64_t te_select_join(te_select_where_call* call, const te_select_view inputs[TE_SELECT_INPUTS]) {
  int64_t elements = 1;
  call->ndim = 0;
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
    if (inputs[i].ndim < 0 || inputs[i].ndim > TE_SELECT_WHERE_RANK) return -1;
    if (inputs[i].ndim > call->ndim) call->ndim = inputs[i].ndim;
  }
  for (int32_t axis = 0; axis < call->ndim; ++axis) {
    call->shape[axis] = 1;
    for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
      int32_t own = axis - (call->ndim - inputs[i].ndim);
      if (own >= 0 && inputs[i].shape[own] != 1) call->shape[axis] = inputs[i].shape[own];
    }
    if (call->shape[axis] < 0) return -1;
    if (__builtin_mul_overflow(elements, call->shape[axis], &elements)) return -1;
  }
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
    const te_select_view* in = &inputs[i];
    int64_t item = te_select_item(i, call->width);
    if (!spread(call, in->ndim, in->shape, in->strides, item, call->strides[i])) return -1;
  }
  return elements;
}

int te_select_join_out(te_select_where_call* call, const te_select_view* out) {
  if (out->ndim != call->ndim) return 0;
  for (int32_t axis = 0; axis < call->ndim; ++axis) {
    if (out->shape[axis] != call->shape[axis]) return 0;
    call->strides[TE_SELECT_OUT][axis] = out->strides[axis];
  }
  return 1;
}

static te_select_extent extent_of(const te_select_where_call* call, const char* data,
                                  const int64_t* strides, int64_t item) {
  int64_t below = 0;
  int64_t above = item;
  for (int32_t i = 0; i < call->ndim; ++i) {
    int64_t reach = strides[i] * (call->shape[i] - 1);
    if (reach < 0) below += reach;
    else above += reach;
  }
  return (te_select_extent){(uintptr_t)data + (uintptr_t)below, (uintptr_t)data + (uintptr_t)above};
}

/* Whether items lie where their elements of out are written. */
static int is_out(const te_select_where_call* call, const char* data, const int64_t* strides,
                  int64_t item) {
  int same = data == call->data[TE_SELECT_OUT] && item == call->width;
  for (int32_t i = 0; i < call->ndim && same; ++i) {
    same = call->shape[i] == 1 || strides[i] == call->strides[TE_SELECT_OUT][i];
  }
  return same;
}

static int input_overlaps(const te_select_where_call* call, const te_select_where_sources* sources,
                          int operand, te_select_extent out) {
  const char* data = call->data[operand];
  const int64_t* strides = call->strides[operand];
  int32_t kind = sources ? sources->kinds[operand] : TE_SELECT_AS_IS;
  int is_as_is = kind == TE_SELECT_AS_IS;
  int64_t item = is_as_is ? te_select_item(operand, call->width) : te_select_item_of_kind(kind);
  te_select_extent own = extent_of(call, data, strides, item);
  if (kind == TE_SELECT_KIND_BITS) {
    own = (te_select_extent){(uintptr_t)sources->bits + own.first / 8,
                             (uintptr_t)sources->bits + (own.end + 7) / 8};
    return !te_select_may_share(own, out, 0);
  }
  int may_be_out = operand != TE_SELECT_COND || !is_as_is;
  return !te_select_may_share(own, out, may_be_out && is_out(call, data, strides, item));
}

int te_select_where_overlaps(const te_select_where_call* call,
                             const te_select_where_sources* sources) {
  uint64_t elements = 1;
  const int64_t* strides = call->strides[TE_SELECT_OUT];
  for (int32_t i = 0; i < call->ndim; ++i) elements *= (uint64_t)call->shape[i];
  if (!elements) return 0;
  te_select_extent out = extent_of(call, call->data[TE_SELECT_OUT], strides, call->width);
  for (int i = TE_SELECT_COND; i < TE_SELECT_OUT; ++i) {
    if (input_overlaps(call, sources, i, out)) return 1;
  }
  /* Out overlaps itself unless a step of each axis leads past all axes with smaller steps. */
  for (int32_t i = 0; i < call->ndim; ++i) {
    if (call->shape[i] == 1) continue;
    int64_t step = llabs(strides[i]);
    int64_t inside = call->width;
    for (int32_t k = 0; k < call->ndim; ++k) {
      int64_t other = call->shape[k] == 1 ? 0 : llabs(strides[k]);
      if (k != i && (other < step || (other == step && k > i))) {
        inside += other * (call->shape[k] - 1);
      }
    }
    if (step < inside) return 1;
  }
  return 0;
}

int te_select_where_is_sound(const te_select_where_call* call) {
  if (call->ndim < 0 || call->ndim > TE_SELECT_WHERE_RANK || call->width < 1) return 0;
  int64_t bytes = call->width, reach;
  for (int32_t i = 0; i < call->ndim; ++i) {
    if (call->shape[i] < 0) return 0;
    if (call->shape[i] == 0) return 1;
  }
  for (int32_t i = 0; i < call->ndim; ++i) {
    if (__builtin_mul_overflow(bytes, call->shape[i], &bytes) || bytes > TE_SELECT_REACH) return 0;
    for (int operand = 0; operand < TE_SELECT_OPERANDS; ++operand) {
      /* There are no steps along an axis of extent 1. */
      if (__builtin_mul_overflow(call->strides[operand][i], call->shape[i] - 1, &reach) ||
          reach > TE_SELECT_REACH || reach < -TE_SELECT_REACH) {
        return 0;
      }
    }
  }
  for (int operand = 0; operand < TE_SELECT_OPERANDS; ++operand)
    if (!call->data[operand]) return 0;
  return !te_select_where_overlaps(call, NULL);
}
