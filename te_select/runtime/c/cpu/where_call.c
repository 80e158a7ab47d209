/* What is asked of a call before it is made: how operands broadcast, and whether they overlap. */
#include <stdlib.h>

#include "where.h"

/* A protected function is exported, and calls from here do not pass the PLT. */
__attribute__((visibility("protected"))) int te_select_broadcast(te_select_where_call* call,
                                                                 int operand, int32_t ndim,
                                                                 const int64_t* shape,
                                                                 const int64_t* strides) {
  int is_call = call->ndim <= TE_SELECT_WHERE_RANK && operand >= 0 && operand < TE_SELECT_OPERANDS;
  if (!is_call || ndim < 0 || ndim > call->ndim) return 0;
  int32_t before = call->ndim - ndim;
  int64_t compact = operand == TE_SELECT_COND ? 1 : call->width;
  for (int32_t i = 0; i < before; ++i) call->strides[operand][i] = 0;
  for (int32_t i = ndim - 1; i >= 0; --i) {
    if (shape[i] == 1) {
      call->strides[operand][before + i] = 0;
    } else if (shape[i] == call->shape[before + i]) {
      call->strides[operand][before + i] = strides ? strides[i] : compact;
    } else {
      return 0;
    }
    compact = (int64_t)((uint64_t)compact * (uint64_t)shape[i]); /* of too many bytes it wraps */
  }
  return 1;
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
    if (!te_select_broadcast(call, i, in->ndim, in->shape, in->strides)) return -1;
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

/* The address of the first byte of an operand, and the address behind its last byte. */
static void find_extent(const te_select_where_call* call, int operand, int64_t item,
                        uintptr_t* first, uintptr_t* end) {
  int64_t below = 0;
  int64_t above = item;
  for (int32_t i = 0; i < call->ndim; ++i) {
    int64_t reach = call->strides[operand][i] * (call->shape[i] - 1);
    if (reach < 0) below += reach;
    else above += reach;
  }
  *first = (uintptr_t)call->data[operand] + (uintptr_t)below;
  *end = (uintptr_t)call->data[operand] + (uintptr_t)above;
}

static int is_converted(const te_select_where_sources* sources, int operand) {
  return sources && sources->kinds[operand] != TE_SELECT_AS_IS;
}

static void find_extent_of_input(const te_select_where_call* call,
                                 const te_select_where_sources* sources, int operand,
                                 uintptr_t* first, uintptr_t* end) {
  int32_t as_is = operand == TE_SELECT_COND ? 1 : call->width;
  if (!is_converted(sources, operand)) {
    find_extent(call, operand, as_is, first, end);
    return;
  }
  int32_t kind = sources->kinds[operand];
  find_extent(call, operand, te_select_item_of_kind(kind), first, end);
  if (kind == TE_SELECT_KIND_BITS) {
    *first = (uintptr_t)sources->bits + *first / 8;
    *end = (uintptr_t)sources->bits + (*end + 7) / 8;
  }
}

/* Whether an operand may be out itself: each of its items lies where its element is written. */
static int is_as_wide(const te_select_where_call* call, const te_select_where_sources* sources,
                      int operand) {
  if (!is_converted(sources, operand)) return operand != TE_SELECT_COND;
  int32_t kind = sources->kinds[operand];
  return kind != TE_SELECT_KIND_BITS && te_select_item_of_kind(kind) == call->width;
}

int te_select_where_overlaps(const te_select_where_call* call,
                             const te_select_where_sources* sources) {
  uintptr_t first, end, from, to;
  uint64_t elements = 1;
  const int64_t* out = call->strides[TE_SELECT_OUT];
  for (int32_t i = 0; i < call->ndim; ++i) elements *= (uint64_t)call->shape[i];
  if (!elements) return 0;
  find_extent(call, TE_SELECT_OUT, call->width, &first, &end);
  for (int operand = 0; operand < TE_SELECT_OUT; ++operand) {
    find_extent_of_input(call, sources, operand, &from, &to);
    if (to <= first || end <= from) continue;
    int same =
        is_as_wide(call, sources, operand) && call->data[operand] == call->data[TE_SELECT_OUT];
    for (int32_t i = 0; i < call->ndim && same; ++i) {
      same = call->shape[i] == 1 || call->strides[operand][i] == out[i];
    }
    if (!same) return 1;
  }
  /* Out overlaps itself unless a step of each axis leads past all axes with smaller steps. */
  for (int32_t i = 0; i < call->ndim; ++i) {
    if (call->shape[i] == 1) continue;
    int64_t step = llabs(out[i]);
    int64_t inside = call->width;
    for (int32_t k = 0; k < call->ndim; ++k) {
      int64_t other = call->shape[k] == 1 ? 0 : llabs(out[k]);
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
