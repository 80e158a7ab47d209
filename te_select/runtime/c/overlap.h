/* Whether out may share memory with an input: one rule for the host half and for the walk of where. */
#pragma once

#include <stdint.h>

/* Memory from a first byte to the one behind the last. */
typedef struct { uintptr_t first, end; } te_select_extent;

/* `is_out`: the elements of the input lie where those of out are written, each of which is written after
 * the same bytes were read. Cond may not be out, unless it is converted: its elements are bytes. */
static inline int te_select_may_share(te_select_extent in, te_select_extent out, int is_out) {
  return in.end <= out.first || out.end <= in.first || is_out;
}
