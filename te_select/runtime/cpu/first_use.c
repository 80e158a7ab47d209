#include "first_use.h"

#include <stdio.h>
#include <stdlib.h>

_Atomic(const te_select_findings*) te_select_found;

static void refuse(te_select_findings* found, const char* kind, const char* why) {
  if (found->refused || !*why) return;
  found->refused = kind;
  snprintf(found->refusal, sizeof(found->refusal), "%s", why);
}

const te_select_findings* te_select_find_out(void) {
  static const te_select_findings no_memory = {
      .level = -1, .refused = "RuntimeError", .refusal = "there is no memory for the first call"};
  te_select_findings* made = calloc(1, sizeof(*made));
  if (!made) return &no_memory;
  te_select_find_machine(&made->machine);
  const te_select_library* library = &te_select_this_library;
  char why[sizeof(made->refusal)] = "";
  const char* kind = te_select_choose_level(library, &made->level, why, sizeof(why));
  refuse(made, kind, why);
  refuse(made, "ValueError", made->machine.threads_problem);
  refuse(made, "ValueError", made->machine.profile_problem);
  if (library->take_level && made->level >= 0) library->take_level(made->level);
  const te_select_findings* known = NULL;
  if (atomic_compare_exchange_strong(&te_select_found, &known, made)) return made;
  free(made);
  return known;
}
