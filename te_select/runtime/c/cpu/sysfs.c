/* Reads /sys/devices/system/cpu. On aarch64 only the system can ask a CPU for its caches. A CPU's name
 * is the register MIDR_EL1.
 *
 * A machine may have large and small cores. The kind with the largest caches, of those that this process
 * may use, stands for all. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpus.h"
#include "machine.h"

#ifndef TE_SELECT_CPUS /* a test has files of its own */
#define TE_SELECT_CPUS "/sys/devices/system/cpu"
#endif

enum { PATH_BYTES = 1 << 10, LINE_BYTES = 1 << 11, MOST_CACHES = 16 };

typedef struct {
  unsigned long long midr; /* 0 if there is none */
  int64_t l1, l2, l3;      /* bytes */
  te_select_cpus with_l3;  /* CPUs that share the L3 */
} core;

int te_select_read_line(char* line, int size, const char* folder, const char* name) {
  char path[PATH_BYTES];
  int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE* file = length < (int)sizeof(path) ? fopen(path, "re") : NULL;
  if (!file) return 0;
  int found = fgets(line, size, file) != NULL;
  fclose(file);
  return found;
}

/* Bytes of a size such as "1024K"; 0 for a text that is not a size, or an impossible one. */
static int64_t parse_size(const char* text) {
  char* unit;
  long long value = strtoll(text, &unit, 10);
  if (value <= 0 || value > 1 << 30) return 0;
  return value << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0);
}

/* Reads CPUs from a list such as "0-3,8"; none from a text that is not a list. */
static void parse_list(const char* text, te_select_cpus* cpus) {
  CPU_ZERO_S(sizeof(*cpus), cpus->set);
  while (*text >= '0' && *text <= '9') {
    char* end;
    long long first = strtoll(text, &end, 10);
    long long last = first;
    if (*end == '-') last = strtoll(end + 1, &end, 10);
    if (last < first || last >= TE_SELECT_MOST_CPUS) {
      CPU_ZERO_S(sizeof(*cpus), cpus->set);
      return;
    }
    for (long long cpu = first; cpu <= last; ++cpu) {
      CPU_SET_S((size_t)cpu, sizeof(*cpus), cpus->set);
    }
    text = *end == ',' ? end + 1 : end;
  }
}

static unsigned long long read_midr(int cpu) {
  char folder[PATH_BYTES], line[LINE_BYTES];
  snprintf(folder, sizeof(folder), "%s/cpu%d/regs/identification", TE_SELECT_CPUS, cpu);
  return te_select_read_line(line, sizeof(line), folder, "midr_el1") ? strtoull(line, NULL, 16) : 0;
}

static void read_core(int cpu, core* c) {
  memset(c, 0, sizeof(*c));
  c->midr = read_midr(cpu);
  for (int i = 0; i < MOST_CACHES; ++i) {
    char folder[PATH_BYTES], line[LINE_BYTES];
    snprintf(folder, sizeof(folder), "%s/cpu%d/cache/index%d", TE_SELECT_CPUS, cpu, i);
    if (!te_select_read_line(line, sizeof(line), folder, "level")) return;
    long level = strtol(line, NULL, 10);
    int holds_data = te_select_read_line(line, sizeof(line), folder, "type") &&
                     strncmp(line, "Instruction", 11) != 0;
    if (!holds_data || !te_select_read_line(line, sizeof(line), folder, "size")) continue;
    if (level == 1) c->l1 = parse_size(line);
    if (level == 2) c->l2 = parse_size(line);
    if (level != 3) continue;
    c->l3 = parse_size(line);
    if (te_select_read_line(line, sizeof(line), folder, "shared_cpu_list")) {
      parse_list(line, &c->with_l3);
    }
  }
}

/* MIDR_EL1 holds the numbers of the maker, the architecture and the part. */
static void take_core(te_select_machine* machine, const core* c) {
  if (c->midr) {
    snprintf(machine->vendor, sizeof(machine->vendor), "arm-%02llx", c->midr >> 24 & 0xff);
    machine->family = (int32_t)(c->midr >> 16 & 0xf);
    machine->model = (int32_t)(c->midr >> 4 & 0xfff);
  }
  machine->l1 = c->l1;
  machine->l2 = c->l2;
  machine->l3 = c->l3;
  machine->threads_per_l3 = CPU_COUNT_S(sizeof(c->with_l3), c->with_l3.set);
}

/* Removes the CPUs that are like one: they have its name, and its L3 if it has one. */
static void drop_alike(te_select_cpus* left, const core* c) {
  int any = !CPU_COUNT_S(sizeof(c->with_l3), c->with_l3.set);
  for (int cpu = 0; cpu < TE_SELECT_MOST_CPUS; ++cpu) {
    if (!CPU_ISSET_S((size_t)cpu, sizeof(*left), left->set)) continue;
    if (!any && !CPU_ISSET_S((size_t)cpu, sizeof(c->with_l3), c->with_l3.set)) continue;
    if (read_midr(cpu) == c->midr) CPU_CLR_S((size_t)cpu, sizeof(*left), left->set);
  }
}

void te_select_detect_by_sysfs(te_select_machine* machine) {
  te_select_cpus left;
  if (!te_select_cpus_of_process(&left)) parse_list("0", &left);
  int found = 0;
  for (int cpu = 0; cpu < TE_SELECT_MOST_CPUS; ++cpu) {
    if (!CPU_ISSET_S((size_t)cpu, sizeof(left), left.set)) continue;
    core c;
    read_core(cpu, &c);
    int is_larger = c.l3 > machine->l3 || (c.l3 == machine->l3 && c.l2 > machine->l2);
    if (is_larger || !found) take_core(machine, &c);
    found = 1;
    drop_alike(&left, &c);
  }
}
