/* The profiles of machines that are made up. */
#include <stdio.h>

#include "cpu_model.c"

static te_select_machine machine;
int64_t l1; /* of the next that is made up */

/* As if this machine had been found. */
const char* pretend(const char* vendor, int family, int model, int64_t l2, int64_t l3,
                    int sharing) {
  memset(&machine, 0, sizeof(machine));
  snprintf(machine.vendor, sizeof(machine.vendor), "%s", vendor);
  machine.family = family;
  machine.model = model;
  machine.l1 = l1;
  machine.l2 = l2;
  machine.l3 = l3;
  machine.threads_per_l3 = sharing;
  machine.max_threads = 1;
  te_select_take_profile(&machine);
  return machine.text;
}

/* The machine at hand. */
const char* find(void) { return te_select_find_machine(&machine); }

int streams(int64_t moved, int64_t out, int fill, int threads) {
  return (fill ? out : moved) >= te_select_streams_from(&machine, fill, threads);
}
