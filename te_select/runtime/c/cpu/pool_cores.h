/* Whether the cores are free for the pool's helpers. All of this is for the call that has the pool. */
#pragma once

#include "pool_state.h"

/* Has the helpers below `end` woken, which do the most of it themselves. Returns whether none slept. */
int te_select_wake_helpers(te_select_pool* p, int32_t end);

/* Wakes so many helpers of those that are left. */
void te_select_wake_some(te_select_pool* p, int32_t count);

/* Decides after a call whether the next ones run alone. `awake`: no helper had to be woken. `done`,
 * `fair`: how many tasks helpers did, and how many their share is. `waited`: how long the caller
 * slept until they had finished, in nanoseconds. */
void te_select_pool_record_result(te_select_pool* p, int awake, uint32_t done, uint32_t fair,
                                  int64_t waited);

/* Whether so many calls in a row had little help that the cores are busy. */
int te_select_is_crowded(const te_select_pool* p);

/* After calls on a team that sleeps now: the cores are free again. */
void te_select_forget_crowd(te_select_pool* p);

/* How many of the threads that a call wants it may have beside other threads that call; all of them
 * together may have `most`. */
int32_t te_select_leave_cores(te_select_pool* p, int32_t wanted, int32_t most);

/* Whether calls that ran alone may have helpers again. It asks the helpers, or looks at their
 * answer. */
int te_select_cores_are_free(te_select_pool* p);

/* A helper says that it has come; the first time, it begins to give way. `gives_way` is its own, and
 * 0 if it does not. */
void te_select_answer(te_select_pool* p, int32_t* gives_way);

/* A helper that has given way does so no longer. */
void te_select_stop_giving_way(int32_t* gives_way);
