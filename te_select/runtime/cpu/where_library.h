/* What the generated stub of a family's library and `where_library.c` have in common. */
#ifndef TE_SELECT_WHERE_LIBRARY_H_
#define TE_SELECT_WHERE_LIBRARY_H_

#include "host_cpu.h"
#include "where.h"

/* Puts the kernels of one level into their places. The stub defines it. */
void te_select_where_fill(te_select_where_kernels* kernels, int32_t level);

/* Selects with these kernels; returns one of the results in `where.h`. */
int32_t te_select_where_walk(const te_select_where_kernels* kernels,
                             const te_select_where_call* call);

#endif
