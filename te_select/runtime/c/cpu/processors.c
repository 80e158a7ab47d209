/* How many threads a call may use: the user's number, or the affinity of the process and the quota
 * of its container. */
#define _GNU_SOURCE
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"
#include "pool_state.h"

#ifndef TE_SELECT_CGROUPS /* a test has files of its own */
#define TE_SELECT_CGROUPS_OF_PROCESS "/proc/self/cgroup"
#define TE_SELECT_CGROUPS "/sys/fs/cgroup"
#endif

enum { PATH_BYTES = 1024, LINE_BYTES = 1024, FALLBACK_PROCESSORS = 1 };

/* Reads a positive whole number, or INT32_MAX for a larger one; 0 if the text is no such number. */
static int32_t parse_count(const char* text) {
  int64_t value = 0;
  for (; *text; ++text) {
    if (*text < '0' || *text > '9') return 0;
    value = value * 10 + (*text - '0');
    if (value > INT32_MAX) value = INT32_MAX;
  }
  return (int32_t)value;
}

static int32_t from_environment(te_select_machine* machine) {
  const char* text = getenv("TE_SELECT_NUM_THREADS");
  if (text && *text) {
    int32_t count = parse_count(text);
    if (count) return count;
    char quoted[64];
    te_select_quote(quoted, sizeof(quoted), text);
    snprintf(machine->threads_problem, sizeof(machine->threads_problem),
             "TE_SELECT_NUM_THREADS is '%s'; expected a positive whole number", quoted);
    return 1;
  }
  text = getenv("OMP_NUM_THREADS"); /* a list has a number for each level of nesting */
  if (!text) return 0;
  char first[32];
  size_t length = strcspn(text, ",");
  if (length >= sizeof(first)) return 0;
  memcpy(first, text, length);
  first[length] = 0;
  return parse_count(first);
}

/* The CPUs of the main thread: the thread that calls first may be tied to one of them. */
static int32_t from_affinity(void) {
  te_select_cpus all;
  int known = !sched_getaffinity(getpid(), sizeof(all), all.set);
  return known ? CPU_COUNT_S(sizeof(all), all.set) : FALLBACK_PROCESSORS;
}

/* ---- the quota of a container's control group ---------------------------------------------------- */

/* Processors that a quota pays for, rounded up; 0 for no quota. Both are microseconds. */
static int32_t processors_of(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  long long count = (quota + period - 1) / period;
  return count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

static int32_t quota_of(const char* folder, int version) {
  char path[PATH_BYTES + 32], line[LINE_BYTES];
  long long quota, period;
  if (version == 2) {
    snprintf(path, sizeof(path), "%s/cpu.max", folder);
    if (!te_select_read_line(path, line, sizeof(line)) ||
        sscanf(line, "%lld %lld", &quota, &period) != 2)
      return 0;
    return processors_of(quota, period);
  }
  snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
  if (!te_select_read_line(path, line, sizeof(line)) || sscanf(line, "%lld", &quota) != 1) return 0;
  snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
  if (!te_select_read_line(path, line, sizeof(line)) || sscanf(line, "%lld", &period) != 1)
    return 0;
  return processors_of(quota, period);
}

/* The smallest quota of a group and of the groups around it; 0 for none. */
static int32_t least_quota(const char* root, const char* group, int version) {
  char folder[PATH_BYTES];
  size_t base = strlen(root);
  if (snprintf(folder, sizeof(folder), "%s%s", root, group) >= (int)sizeof(folder)) return 0;
  int32_t least = 0;
  for (;;) {
    int32_t here = quota_of(folder, version);
    if (here && (!least || here < least)) least = here;
    char* slash = strrchr(folder, '/');
    if (!slash || (size_t)(slash - folder) < base) return least;
    *slash = 0;
  }
}

/* Whether a comma list has the word "cpu". */
static int names_cpu(const char* list, size_t length) {
  for (const char *at = list, *end = list + length; at < end;) {
    size_t word = strcspn(at, ",:");
    if (word == 3 && !memcmp(at, "cpu", 3)) return 1;
    at += word + 1;
  }
  return 0;
}

/* Lines of /proc/self/cgroup are "NUMBER:CONTROLLERS:GROUP", and "0::GROUP" in version 2. */
static int32_t from_quota(const char* proc, const char* mount) {
  FILE* file = fopen(proc, "re");
  if (!file) return 0;
  char line[LINE_BYTES], root[PATH_BYTES];
  int32_t least = 0;
  while (fgets(line, sizeof(line), file)) {
    char* controllers = strchr(line, ':');
    char* group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    ++controllers;
    size_t length = (size_t)(group - controllers);
    ++group;
    group[strcspn(group, "\n")] = 0;
    int version = length ? 1 : 2;
    if (length && !names_cpu(controllers, length)) continue;
    snprintf(root, sizeof(root), "%s%s%.*s", mount, length ? "/" : "", (int)length, controllers);
    int32_t here = least_quota(root, group, version);
    if (!here)
      here = least_quota(root, "", version); /* inside the container, the group is the root */
    if (!here && version == 1) {
      snprintf(root, sizeof(root), "%s/cpu", mount);
      here = least_quota(root, group, 1);
      if (!here) here = least_quota(root, "", 1);
    }
    if (here && (!least || here < least)) least = here;
  }
  fclose(file);
  return least;
}

void te_select_count_threads(te_select_machine* machine) {
  int32_t count = from_environment(machine);
  if (!count) {
    count = from_affinity();
    int32_t quota = from_quota(TE_SELECT_CGROUPS_OF_PROCESS, TE_SELECT_CGROUPS);
    if (quota && quota < count) count = quota;
  }
  machine->max_threads = count < TE_SELECT_MOST_THREADS ? count : TE_SELECT_MOST_THREADS;
}
