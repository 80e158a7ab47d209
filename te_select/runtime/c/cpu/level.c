/* Chooses one of the levels of a library before any code of a level runs. So a CPU without the
 * features gets a message instead of an illegal instruction. */
#include "level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

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

const char* te_select_choose_level(const te_select_library* library, int32_t* level, char* why,
                                   size_t size) {
  const char* asked = library->num_levels > 1 ? getenv("TE_SELECT_LEVEL") : NULL;
  if (!asked) asked = "";
  int32_t lowest = -1; /* of those that may be taken */
  *level = -1;
  for (int32_t i = 0; i < library->num_levels; ++i) {
    if (*asked && strcmp(library->levels[i].name, asked)) continue;
    if (lowest < 0) lowest = i;
    if (!lacking(&library->levels[i])) *level = i;
  }
  if (*level >= 0) return NULL;
  if (lowest < 0) {
    list_levels(library, asked, why, size);
    return "ValueError";
  }
  snprintf(why, size, "%s %s, and this CPU lacks %s",
           *asked ? "TE_SELECT_LEVEL is" : "the library was compiled for",
           library->levels[lowest].name, lacking(&library->levels[lowest]));
  return "RuntimeError";
}
