/* The tasks of a call, and the bytes that it moves by te_select_count_moved. */
#include "decide.c"
int64_t tasks_for(int64_t moved, int32_t threads) { return count_tasks(moved, threads); }
