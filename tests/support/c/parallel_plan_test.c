/* The tasks of a call. */
#include "parallel_plan.h"
int64_t tasks_for(int64_t moved, int32_t threads) { return te_select_tasks_for(moved, threads); }
