/* Calls a kernel in a parallel region of OpenMP, then outside of it; prints after each how many
 * threads the pool has. As a plug-in it has no main. */
#include "operands.h"

enum { TEAM = 2, CALLS = 20, ELEMENTS = 1 << 20 };

int run(void) {
  int failed = 0;
#pragma omp parallel num_threads(TEAM) reduction(+ : failed)
  {
    operands own = make_operands(ELEMENTS);
    for (int k = 0; k < CALLS; ++k) failed += call_fails(&own, ELEMENTS);
  }
  int inside = count_helpers();
  operands own = make_operands(ELEMENTS);
  failed += call_fails(&own, ELEMENTS);
  printf("%d %d\n", inside, count_helpers());
  return failed;
}

#ifndef PLUG_IN
int main(void) { return run(); }
#endif
