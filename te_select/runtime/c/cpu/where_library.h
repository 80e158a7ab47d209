/* What the generated stub of a family's library and `where_library.c` have in common. */
#ifndef TE_SELECT_WHERE_LIBRARY_H_
#define TE_SELECT_WHERE_LIBRARY_H_

#include "host_cpu.h"
#include "machine.h"
#include "pool_of_caller.h"
#include "where.h"

/* A place of the table: for a kernel, or NULL. Another thread may be putting one there. */
static inline te_select_where_run te_select_kernel_at(const te_select_where_run* place) {
  return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}
static inline void te_select_put_kernel(te_select_where_run* place, te_select_where_run kernel) {
  __atomic_store_n(place, kernel, __ATOMIC_RELEASE);
}

/* Puts the kernels of one level into their places, the last run of a width last. The stub defines
 * it. */
void te_select_where_fill(te_select_where_kernels* kernels, int32_t level);

/* Takes the kernels of this library; it is the `take_level` of its te_select_library. */
void te_select_where_take_level(int32_t level);

/* Selects with these kernels, on the threads of a caller's pool, or on our own if that is NULL;
 * returns one of the results in `where_call.h`. */
int32_t te_select_where_walk(const te_select_where_kernels* kernels,
                             const te_select_machine* machine, const te_select_where_call* call,
                             const te_select_pool_of_caller* pool);

/* The same with all kernels that this library has, on the machine that it runs on. */
int32_t te_select_where_run_on(const te_select_where_call* call,
                               const te_select_pool_of_caller* pool);

/* Why calls are refused, a text that is never freed; NULL if they are not refused. */
const char* te_select_where_refusal(void);

#endif
