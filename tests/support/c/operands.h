/* Operands of a kernel whose function is SELECT, for any number of float elements. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  uint8_t* cond;
  float *then, *else_, *out;
} operands;

static inline operands make_operands(int64_t n) {
  operands made = {malloc(n), malloc(4 * n), malloc(4 * n), malloc(4 * n)};
  for (int64_t i = 0; i < n; ++i) {
    made.cond[i] = i % 3 == 0;
    made.then[i] = (float)i;
    made.else_[i] = (float)-i;
    made.out[i] = 0.5f;
  }
  return made;
}

/* Whether a call was refused, or its result is wrong. */
static inline int call_fails(const operands* on, int64_t n) {
  if (SELECT(on->cond, on->then, on->else_, on->out, n)) return 1;
  for (int64_t i = 0; i < n; ++i) {
    if (on->out[i] != (float)(i % 3 ? -i : i)) return 1;
  }
  return 0;
}

/* The threads of the pool. */
static inline int count_helpers(void) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* task; (task = readdir(tasks));) {
    char path[300], name[32] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
    FILE* file = fopen(path, "r");
    if (!file) continue;
    if (fgets(name, sizeof(name), file)) count += !strcmp(name, "te_select\n");
    fclose(file);
  }
  closedir(tasks);
  return count;
}
