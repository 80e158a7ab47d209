/* The order of the axes of a fresh result, as NumPy's iterator chooses it. */
#include "extension.h"

/* Whether an axis belongs inside of another: 1 yes, 0 no, -1 no operand has both strides. An
 * operand that forbids it overrules those that want it. */
static int belongs_inside(int64_t inputs[3][TE_SELECT_WHERE_RANK], int32_t axis, int32_t other) {
  int vote = -1;
  for (int i = 0; i < 3; ++i) {
    int64_t stride = llabs(inputs[i][axis]), inner = llabs(inputs[i][other]);
    if (!stride || !inner) continue;
    if (inner <= stride) {
      vote = 0;
    } else if (vote < 0) {
      vote = 1;
    }
  }
  return vote;
}

void te_select_keep_order(te_select_where_call* call, int64_t inputs[3][TE_SELECT_WHERE_RANK]) {
  int32_t order[TE_SELECT_WHERE_RANK]; /* innermost first */
  for (int32_t i = 0; i < call->ndim; ++i) {
    int32_t axis = call->ndim - 1 - i;
    int32_t place = i;
    for (int32_t at = i - 1; at >= 0; --at) {
      int vote = belongs_inside(inputs, axis, order[at]);
      if (vote == 0) break;
      if (vote == 1) place = at;
    }
    for (int32_t at = i; at > place; --at) order[at] = order[at - 1];
    order[place] = axis;
  }
  int64_t stride = call->width;
  for (int32_t i = 0; i < call->ndim; ++i) {
    call->strides[3][order[i]] = stride;
    stride *= call->shape[order[i]];
  }
}
