/* What the generated stub of a family library tells `where_library.c`. */
#ifndef TE_SELECT_WHERE_LIBRARY_H_
#define TE_SELECT_WHERE_LIBRARY_H_

#include "host_cpu.h"
#include "where.h"

/* Puts the kernels of one level in their places. */
void te_select_where_fill(te_select_where_kernels* kernels, int32_t level);

/* Selects by these kernels; returns what a call came to, see `where.h`. */
int32_t te_select_where_walk(const te_select_where_kernels* kernels,
                             const te_select_where_call* call);

#endif
