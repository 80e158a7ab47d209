/* The levels of a library, and the one that this CPU runs. */
#ifndef TE_SELECT_LEVEL_H_
#define TE_SELECT_LEVEL_H_

#include "host.h"

/* Code for CPUs with some features. */
typedef struct {
  const char* name;            /* of the target */
  const char* const* features; /* as /proc/cpuinfo spells them; ends with NULL */
} te_select_level;

typedef struct {
  int32_t num_levels;
  const te_select_level* levels; /* the best last */
} te_select_library;

/* The levels of this library. The stub defines them. */
extern const te_select_library te_select_this_library __attribute__((visibility("hidden")));

/* The level in use: the one that TE_SELECT_LEVEL names, if the library has several; else the best
 * one that this CPU runs. -1 if there is none. It is chosen when the library is loaded. */
int32_t te_select_level_here(void);

/* Why no level is in use; NULL if one is. */
const char* te_select_level_problem(void);

/* Adds that to a message, and raises it as an error; returns -1. */
int te_select_refuse_level(te_select_message* m);

#endif
