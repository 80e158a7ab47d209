/* Makes the loops of a call. */
#include "where_plan.h"

#include <string.h>

static int can_merge(const te_select_loop* outer, const te_select_loop* inner) {
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (outer->stride[i] != inner->stride[i] * inner->extent) return 0;
  }
  return 1;
}

/* Makes a loop of an element that no kernel is as wide as: it has parts of the widest width that
 * divides it. */
static void split_elements(te_select_nest* nest) {
  int32_t part = nest->width & -nest->width;
  if (part > 16) part = 16;
  if (part == nest->width) return;
  te_select_loop* loop = &nest->loops[nest->count++];
  loop->extent = nest->width / part;
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) loop->stride[i] = i == TE_SELECT_COND ? 0 : part;
  nest->width = part;
}

int te_select_make_nest(const te_select_where_call* call, te_select_nest* nest) {
  nest->count = 0;
  nest->width = call->width;
  memcpy(nest->data, call->data, sizeof(nest->data));
  for (int32_t axis = 0; axis < call->ndim; ++axis) {
    if (call->shape[axis] == 0) return 0; /* its operands may have no memory to step through */
  }
  for (int32_t axis = 0; axis < call->ndim; ++axis) {
    int64_t extent = call->shape[axis];
    if (extent == 1) continue;
    te_select_loop* loop = &nest->loops[nest->count++];
    loop->extent = extent;
    int64_t forwards = call->strides[TE_SELECT_OUT][axis] < 0 ? -1 : 1;
    for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
      int64_t stride = call->strides[i][axis];
      loop->stride[i] = stride * forwards;
      if (forwards < 0) nest->data[i] += stride * (extent - 1);
    }
    for (int32_t at = nest->count - 1; at > 0; --at) {
      if (nest->loops[at - 1].stride[TE_SELECT_OUT] >= nest->loops[at].stride[TE_SELECT_OUT]) break;
      te_select_loop kept = nest->loops[at];
      nest->loops[at] = nest->loops[at - 1];
      nest->loops[at - 1] = kept;
    }
  }
  split_elements(nest);
  int32_t kept = 0;
  for (int32_t i = 1; i < nest->count; ++i) {
    if (can_merge(&nest->loops[kept], &nest->loops[i])) {
      int64_t extent = nest->loops[kept].extent * nest->loops[i].extent;
      nest->loops[kept] = nest->loops[i];
      nest->loops[kept].extent = extent;
    } else {
      nest->loops[++kept] = nest->loops[i];
    }
  }
  if (nest->count) nest->count = kept + 1;
  return 1;
}
