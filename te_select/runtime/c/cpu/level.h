/* The levels of a library, and the one that this CPU runs. */
#pragma once

#include "host.h"

/* Code for CPUs with some features. */
typedef struct {
  const char* name;            /* of the target */
  const char* const* features; /* as /proc/cpuinfo spells them; ends with NULL */
} te_select_level;

typedef struct {
  int32_t num_levels;
  const te_select_level* levels; /* the best last */
  /* Is told which one is in use, before any call is served; NULL if nobody needs to know. Several
   * threads may call it at once. */
  void (*take_level)(int32_t level);
} te_select_library;

/* The levels of this library. The stub defines them. */
extern const te_select_library te_select_this_library __attribute__((visibility("hidden")));
