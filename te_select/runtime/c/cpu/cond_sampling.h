/* Whether spans look at a block of cond first, and do not read a side that it does not select. */
#ifndef TE_SELECT_COND_SAMPLING_H_
#define TE_SELECT_COND_SAMPLING_H_

#include <stdint.h>

#include "machine.h"

enum { TE_SELECT_COND_AXES = 65 };

/* The memory of cond: `count` loops around runs of `run` contiguous elements; and what it is for. */
typedef struct {
  const char* data;
  int64_t run;
  int32_t count;
  int in_place; /* whether out is one of the sides itself */
  int64_t extent[TE_SELECT_COND_AXES], stride[TE_SELECT_COND_AXES]; /* bytes */
} te_select_cond;

/* Decides by the machine. If it is TE_SELECT_SKIP_IN_RUNS, cond must be read once, and equal along
 * most of some runs, which are tested. `width` is that of an element of out, in bytes. */
int te_select_looks(const te_select_machine* machine, const te_select_cond* cond, int reads_once,
                    int64_t width);

#endif
