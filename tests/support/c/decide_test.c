/* The tasks of a call. */
#include "decide.c"
int64_t tasks_for(int64_t moved, int32_t threads) { return count_tasks(moved, threads); }
