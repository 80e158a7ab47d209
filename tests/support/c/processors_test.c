/* The numbers of threads that each source gives. */
#include "processors.c"

static te_select_machine machine;

int processors(void) { return from_affinity(); }
int wish(void) { return from_environment(&machine); }
int quota(void) { return from_quota(TE_SELECT_CGROUPS_OF_PROCESS, TE_SELECT_CGROUPS); }
int threads(void) {
  te_select_count_threads(&machine);
  return machine.max_threads;
}
