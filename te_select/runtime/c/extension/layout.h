/* The order of the axes of a fresh result. */
#ifndef TE_SELECT_LAYOUT_H_
#define TE_SELECT_LAYOUT_H_

#include "where.h"

/* Sets the strides of out as numpy.where would: compact, in the order that the inputs have in
 * common ("K"). `inputs` are the strides that they came with. */
void te_select_keep_order(te_select_where_call* call, int64_t inputs[3][TE_SELECT_WHERE_RANK]);

#endif
