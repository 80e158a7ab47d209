/* What a library finds out at its first use: the machine, and which of its levels runs here. The level
 * is chosen before any code of a level runs. So a CPU without the features gets a message instead of an
 * illegal instruction. */
#include "first_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_features.h"

_Atomic(const te_select_findings*) te_select_found;

static const char* lacking(const te_select_level* level) {
  for (const char* const* feature = level->features; *feature; ++feature) {
    if (!te_select_cpu_has(*feature)) return *feature;
  }
  return NULL;
}

static void list_levels(const te_select_library* library, const char* asked, char* why,
                        size_t size) {
  char quoted[64];
  te_select_quote(quoted, sizeof(quoted), asked);
  size_t used = (size_t)snprintf(why, size, "TE_SELECT_LEVEL is '%s'; expected", quoted);
  for (int32_t i = 0; i < library->num_levels && used < size; ++i) {
    used +=
        (size_t)snprintf(why + used, size - used, "%s %s", i ? " or" : "", library->levels[i].name);
  }
}

/* Chooses the level that TE_SELECT_LEVEL names, if the library has several; else the best one that this
 * CPU runs. Returns NULL, or the kind of error if there is none. */
static const char* choose_level(const te_select_library* library, te_select_findings* made) {
  const char* asked = library->num_levels > 1 ? getenv("TE_SELECT_LEVEL") : NULL;
  if (!asked) asked = "";
  int32_t lowest = -1; /* of those that may be taken */
  made->level = -1;
  for (int32_t i = 0; i < library->num_levels; ++i) {
    if (*asked && strcmp(library->levels[i].name, asked)) continue;
    if (lowest < 0) lowest = i;
    if (!lacking(&library->levels[i])) made->level = i;
  }
  if (made->level >= 0) return NULL;
  if (lowest < 0) {
    list_levels(library, asked, made->refusal, sizeof(made->refusal));
    return "ValueError";
  }
  snprintf(made->refusal, sizeof(made->refusal), "%s %s, and this CPU lacks %s",
           *asked ? "TE_SELECT_LEVEL is" : "the library was compiled for",
           library->levels[lowest].name, lacking(&library->levels[lowest]));
  return "RuntimeError";
}

const te_select_findings* te_select_find_out(void) {
  static const te_select_findings no_memory = {
      .level = -1, .refused = "RuntimeError", .refusal = "there is no memory for the first call"};
  te_select_findings* made = calloc(1, sizeof(*made));
  if (!made) return &no_memory;
  te_select_find_machine(&made->machine);
  const te_select_library* library = &te_select_this_library;
  made->refused = choose_level(library, made);
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
