/* Reads /sys/devices/system/cpu/cpu0. On aarch64 only the system can ask the CPU for its caches.
 * The CPU's name is the register MIDR_EL1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

#ifndef TE_SELECT_CPU0 /* a test has files of its own */
#define TE_SELECT_CPU0 "/sys/devices/system/cpu/cpu0"
#endif

enum { PATH_BYTES = 1 << 12, LINE_BYTES = 1024, MOST_CACHES = 16 };

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

/* How many processors a list such as "0-3,8" names; 0 for a text that is not a list. */
static int32_t count_list(const char* text) {
  long long count = 0;
  while (*text >= '0' && *text <= '9') {
    char* end;
    long long first = strtoll(text, &end, 10), last = first;
    if (*end == '-') last = strtoll(end + 1, &end, 10);
    if (last < first || last >= 1 << 20) return 0;
    count += last - first + 1;
    text = *end == ',' ? end + 1 : end;
  }
  return count > INT32_MAX ? 0 : (int32_t)count;
}

/* MIDR_EL1 holds the numbers of the maker, the architecture and the part. */
static void read_identification(te_select_machine* machine) {
  char line[LINE_BYTES];
  if (!te_select_read_line(line, sizeof(line), TE_SELECT_CPU0 "/regs/identification", "midr_el1")) {
    return;
  }
  unsigned long long midr = strtoull(line, NULL, 16);
  snprintf(machine->vendor, sizeof(machine->vendor), "arm-%02llx", midr >> 24 & 0xff);
  machine->family = (int32_t)(midr >> 16 & 0xf);
  machine->model = (int32_t)(midr >> 4 & 0xfff);
}

void te_select_detect_by_sysfs(te_select_machine* machine) {
  read_identification(machine);
  for (int i = 0; i < MOST_CACHES; ++i) {
    char folder[PATH_BYTES], line[LINE_BYTES];
    snprintf(folder, sizeof(folder), "%s/cache/index%d", TE_SELECT_CPU0, i);
    if (!te_select_read_line(line, sizeof(line), folder, "level")) return;
    long level = strtol(line, NULL, 10);
    int holds_data = te_select_read_line(line, sizeof(line), folder, "type") &&
                     strncmp(line, "Instruction", 11) != 0;
    if (!holds_data || !te_select_read_line(line, sizeof(line), folder, "size")) continue;
    if (level == 2) machine->l2 = parse_size(line);
    if (level != 3) continue;
    machine->l3 = parse_size(line);
    if (te_select_read_line(line, sizeof(line), folder, "shared_cpu_list"))
      machine->threads_per_l3 = count_list(line);
  }
}
