/* Chooses one of the levels of a library when it is loaded. That is before any code of a level
 * runs, so a CPU without the features gets a message instead of an illegal instruction. */
#include "level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_features.h"

enum { NO_LEVEL = -1 };

static int32_t chosen = NO_LEVEL;
static const te_select_level* wanted; /* by TE_SELECT_LEVEL; NULL: any level */
static char unknown[64];              /* what TE_SELECT_LEVEL says, if that is no level */
static char problem[256];

static const char* lacking(const te_select_level* level) {
  for (const char* const* feature = level->features; *feature; ++feature) {
    if (!te_select_cpu_has(*feature)) return *feature;
  }
  return NULL;
}

static void take_environment(const te_select_library* library) {
  const char* text = getenv("TE_SELECT_LEVEL");
  if (library->num_levels < 2 || !text || !*text) return; /* there is nothing to choose */
  for (int32_t i = 0; i < library->num_levels; ++i) {
    if (!strcmp(library->levels[i].name, text)) wanted = &library->levels[i];
  }
  if (wanted) return;
  snprintf(unknown, sizeof(unknown), "%s", text);
  for (char* c = unknown; *c; ++c) { /* a message must be UTF-8 */
    if (*c < ' ' || *c > '~') *c = '?';
  }
}

static void explain(const te_select_library* library) {
  if (!*unknown) {
    const te_select_level* lowest = wanted ? wanted : library->levels;
    snprintf(problem, sizeof(problem), "the library was compiled for %s, and this CPU lacks %s",
             lowest->name, lacking(lowest));
    return;
  }
  size_t used =
      (size_t)snprintf(problem, sizeof(problem), "TE_SELECT_LEVEL is '%s'; expected", unknown);
  for (int32_t i = 0; i < library->num_levels && used < sizeof(problem); ++i) {
    used += (size_t)snprintf(problem + used, sizeof(problem) - used, "%s %s", i ? " or" : "",
                             library->levels[i].name);
  }
}

/* It runs before the other constructors, because one of them asks for the level. */
__attribute__((constructor(200))) static void choose(void) {
  const te_select_library* library = &te_select_this_library;
  take_environment(library);
  for (int32_t i = 0; i < library->num_levels && !*unknown; ++i) {
    const te_select_level* level = &library->levels[i];
    if ((!wanted || wanted == level) && !lacking(level)) chosen = i;
  }
  if (chosen == NO_LEVEL) explain(library);
}

int32_t te_select_level_here(void) { return chosen; }

const char* te_select_level_problem(void) { return *problem ? problem : NULL; }

int te_select_refuse_level(te_select_message* m) {
  te_select_append(m, "%s", problem);
  return te_select_fail(*unknown ? "ValueError" : "RuntimeError", m);
}

/* The number of the level in use; 0 is the lowest. */
TVM_FFI_DLL_EXPORT int __tvm_ffi_te_select_level(void* self, const TVMFFIAny* args,
                                                 int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)args, (void)num_args;
  te_select_message m = {0};
  if (chosen == NO_LEVEL) return te_select_refuse_level(&m);
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = chosen;
  return 0;
}
