/* What the generated stub of a family's library and `where_library.c` have in common. */
#pragma once

#include "host_cpu.h"
#include "where_abi.h"

/* Puts the kernels and stages of one level into their places, the last run of a width last. The stub
 * defines it. */
void te_select_where_fill(te_select_where_kernels* kernels, te_select_where_stages* stages,
                          int32_t level);

/* Takes the kernels of this library; it is the `take_level` of its te_select_library. */
void te_select_where_take_level(int32_t level);

/* Why a call was not done, by its result: a text that is never freed. */
const char* te_select_where_why(int32_t result);
