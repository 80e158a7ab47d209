/* The OpenMP team that the calling thread already has. All but the first is for the call that has the
 * pool. */
#pragma once

#include <link.h>

#include "pool_state.h"

/* Whether the caller is in a parallel region of a runtime that was found. */
int te_select_in_region(te_select_pool* p);

/* Gives a call to the caller's team if that is at work, with no more threads than it has; or to the
 * helpers if it was, and sleeps now. */
void te_select_take_team(te_select_pool* p, te_select_crew* crew);

/* Runs the pool's job on a team. Returns how many tasks the caller did. */
uint32_t te_select_run_on_team(te_select_pool* p, int32_t team, int32_t threads);

/* Begins to look for runtimes that are loaded. For helpers only. */
void te_select_look_for_runtimes(te_select_pool* p);

/* The library or the program that an address is in; NULL with musl, which unloads none. */
struct link_map* te_select_library_of(void* address);
