/* Whether spans look at a block of cond first, and do not read a side that it does not select. */
#pragma once

#include <stdint.h>

#include "machine.h"
#include "operand_order.h"

typedef struct {
  int64_t extent;
  int64_t stride[TE_SELECT_OPERANDS]; /* bytes */
} te_select_loop;

/* The memory of cond: `count` loops around runs of `run` contiguous elements; and what it is for. */
typedef struct {
  const char* data;
  int64_t run;
  int32_t count;
  const te_select_loop* loops;
  int in_place;  /* whether out is one of the sides itself */
  int64_t width; /* of an element of out, in bytes */
} te_select_cond;

/* Decides by the machine. If it is TE_SELECT_SKIP_IN_RUNS, cond must be read once, and equal along
 * most of some runs, which are tested. */
int te_select_looks(const te_select_machine* machine, const te_select_cond* cond, int reads_once);
