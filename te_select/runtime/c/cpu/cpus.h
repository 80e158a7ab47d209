/* Sets of CPUs. */
#pragma once

#include <sched.h>
#include <unistd.h>

enum { TE_SELECT_MOST_CPUS = 1 << 14 }; /* of the largest machine */

/* As the macros CPU_..._S take it. */
typedef struct { cpu_set_t set[TE_SELECT_MOST_CPUS / CPU_SETSIZE]; } te_select_cpus;

/* The CPUs of the main thread: the thread that calls first may be tied to one of them. Returns 0 if
 * they are not known. */
static inline int te_select_cpus_of_process(te_select_cpus* all) {
  return !sched_getaffinity(getpid(), sizeof(*all), all->set);
}
