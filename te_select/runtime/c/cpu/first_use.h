/* What a library finds out at its first use. Loading it asks the system for nothing. */
#pragma once

#include <stdatomic.h>

#include "level.h"
#include "machine.h"

typedef struct {
  te_select_machine machine;
  int32_t level;       /* whose code runs; -1 if there is none for this CPU */
  const char* refused; /* the kind of error by which every call is refused; NULL if none is */
  char refusal[256];   /* why, in one line */
} te_select_findings;

/* NULL until the first use is over. Then it never changes. */
extern _Atomic(const te_select_findings*) te_select_found;

/* Finds it out. Several threads may do so at once: all get the findings of one of them. */
const te_select_findings* te_select_find_out(void) __attribute__((cold));

static inline const te_select_findings* te_select_here(void) {
  const te_select_findings* found = atomic_load_explicit(&te_select_found, memory_order_acquire);
  return __builtin_expect(found != NULL, 1) ? found : te_select_find_out();
}
