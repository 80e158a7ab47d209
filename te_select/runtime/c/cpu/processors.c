/* How many threads a call may use: the user's number, or the affinity of the process and the quota
 * of its container. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpus.h"
#include "machine.h"
#include "pool.h"

#ifndef TE_SELECT_CGROUPS /* a test has files of its own */
#define TE_SELECT_CGROUPS_OF_PROCESS "/proc/self/cgroup"
#define TE_SELECT_CGROUPS "/sys/fs/cgroup"
#endif

enum { PATH_BYTES = 1024, LINE_BYTES = 1024, OMP_BYTES = 32, FALLBACK_PROCESSORS = 1 };

/* Reads a positive whole number that ends at a character or the end of the text, or INT32_MAX for a
 * larger one; 0 if it is no such number. */
static int32_t parse_count(const char* text, char end) {
  char after = text[strspn(text, "0123456789")];
  if (after && after != end) return 0;
  long long value = strtoll(text, NULL, 10);
  return value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

static int32_t from_environment(te_select_machine* machine) {
  const char* text = getenv("TE_SELECT_NUM_THREADS");
  if (text && *text) {
    int32_t count = parse_count(text, 0);
    if (count) return count;
    char quoted[64];
    te_select_quote(quoted, sizeof(quoted), text);
    snprintf(machine->threads_problem, sizeof(machine->threads_problem),
             "TE_SELECT_NUM_THREADS is '%s'; expected a positive whole number", quoted);
    return 1;
  }
  text = getenv("OMP_NUM_THREADS"); /* a list has a number for each level of nesting */
  return text && strcspn(text, ",") < OMP_BYTES ? parse_count(text, ',') : 0;
}

static int32_t from_affinity(void) {
  te_select_cpus all;
  return te_select_cpus_of_process(&all) ? CPU_COUNT_S(sizeof(all), all.set) : FALLBACK_PROCESSORS;
}

/* ---- the quota of a container's control group ---------------------------------------------------- */

/* Processors that the quota of a group pays for, rounded up; 0 for no quota. Numbers are
 * microseconds. In version 2, one file has both. */
static int32_t quota_of(const char* folder) {
  char line[LINE_BYTES];
  long long quota = 0, period = 0;
  if (te_select_read_line(line, sizeof(line), folder, "cpu.max")) {
    sscanf(line, "%lld %lld", &quota, &period);
  } else if (te_select_read_line(line, sizeof(line), folder, "cpu.cfs_quota_us")) {
    quota = strtoll(line, NULL, 10);
    if (te_select_read_line(line, sizeof(line), folder, "cpu.cfs_period_us")) {
      period = strtoll(line, NULL, 10);
    }
  }
  if (quota <= 0 || period <= 0) return 0;
  long long count = quota / period + (quota % period != 0);
  return count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

/* The smaller of two quotas, of which 0 is none. */
static int32_t smaller_quota(int32_t a, int32_t b) { return !a || (b && b < a) ? b : a; }

/* The smallest quota of a group and of the groups around it, up to the root, which is the group inside
 * a container; 0 for none. */
static int32_t least_quota(const char* root, const char* group) {
  char folder[2 * PATH_BYTES], *slash = NULL;
  size_t base = strlen(root);
  snprintf(folder, sizeof(folder), "%s%s", root, group);
  int32_t found = 0;
  do {
    if (slash) *slash = 0;
    found = smaller_quota(found, quota_of(folder));
  } while ((slash = strrchr(folder + base, '/')));
  return found;
}

/* Whether a comma list, which it takes apart, has the word "cpu". */
static int names_cpu(char* list) {
  for (char* word; (word = strsep(&list, ","));) {
    if (!strcmp(word, "cpu")) return 1;
  }
  return 0;
}

/* Lines of /proc/self/cgroup are "NUMBER:CONTROLLERS:GROUP", and "0::GROUP" in version 2. */
static int32_t from_quota(const char* proc, const char* mount) {
  FILE* file = fopen(proc, "re");
  if (!file) return 0;
  char line[LINE_BYTES], root[PATH_BYTES];
  int32_t found = 0;
  while (fgets(line, sizeof(line), file)) {
    char* rest = line;
    strsep(&rest, ":");
    char *controllers = strsep(&rest, ":"), *group = strsep(&rest, "\n");
    if (!group) continue;
    if (*controllers && !names_cpu(controllers)) continue;
    /* In version 1 a folder of several controllers has a link for each of them. */
    snprintf(root, sizeof(root), "%s/%s", mount, *controllers ? "cpu" : "");
    found = smaller_quota(found, least_quota(root, group));
  }
  fclose(file);
  return found;
}

int32_t te_select_count_threads(te_select_machine* machine) {
  int32_t count = from_environment(machine);
  if (!count) {
    count = from_affinity();
    int32_t quota = from_quota(TE_SELECT_CGROUPS_OF_PROCESS, TE_SELECT_CGROUPS);
    count = smaller_quota(count, quota);
  }
  machine->max_threads = (int32_t)te_select_least(count, TE_SELECT_MOST_THREADS);
  return machine->max_threads;
}
