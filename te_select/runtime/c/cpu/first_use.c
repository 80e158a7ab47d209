#include "first_use.h"

#include <stdio.h>
#include <stdlib.h>

_Atomic(const te_select_findings*) te_select_found;

const te_select_findings* te_select_find_out(void) {
  static const te_select_findings no_memory = {
      .level = -1, .refused = "RuntimeError", .refusal = "there is no memory for the first call"};
  te_select_findings* made = calloc(1, sizeof(*made));
  if (!made) return &no_memory;
  te_select_find_machine(&made->machine);
  const te_select_library* library = &te_select_this_library;
  made->refused =
      te_select_choose_level(library, &made->level, made->refusal, sizeof(made->refusal));
  const te_select_machine* machine = &made->machine;
  const char* why = *machine->threads_problem ? machine->threads_problem : machine->profile_problem;
  if (!made->refused && *why) {
    made->refused = "ValueError";
    snprintf(made->refusal, sizeof(made->refusal), "%s", why);
  }
  if (library->take_level && made->level >= 0) library->take_level(made->level);
  const te_select_findings* known = NULL;
  if (atomic_compare_exchange_strong(&te_select_found, &known, made)) return made;
  free(made);
  return known;
}
