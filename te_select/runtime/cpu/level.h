/* Which level of a library this CPU runs. */
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

/* The levels of this library, which its stub lists. */
extern const te_select_library te_select_this_library __attribute__((visibility("hidden")));

/* The best level that this CPU runs, or that TE_SELECT_LEVEL names of several; -1 where there is
 * none. Chosen when the library is loaded. */
int32_t te_select_level_here(void);

/* Why there is no level for this CPU, or none that TE_SELECT_LEVEL names; NULL where there is. */
const char* te_select_level_problem(void);

/* Raises that as an error; returns -1. The message has begun. */
int te_select_refuse_level(te_select_message* m);

#endif
