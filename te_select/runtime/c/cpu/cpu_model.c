/* Detects the CPU: by CPUID on x86-64, by files elsewhere.
 *
 * sysconf would give the caches of a whole package on AMD, because glibc reads leaf 0x80000006.
 */
#define _GNU_SOURCE
#include <string.h>

#include "machine.h"

#if defined(__x86_64__)
#include <cpuid.h>

enum { DATA = 1, UNIFIED = 3 };

/* Leaf 4 of Intel and leaf 0x8000001D of AMD have the same form: one cache for each index. */
static void read_caches(te_select_machine* machine, uint32_t leaf) {
  for (uint32_t i = 0; i < 16; ++i) {
    uint32_t a, b, c, d;
    __cpuid_count(leaf, i, a, b, c, d);
    uint32_t type = a & 31;
    uint32_t level = a >> 5 & 7;
    if (!type) break;
    if (type != DATA && type != UNIFIED) continue;
    int64_t ways = (b >> 22) + 1;
    int64_t partitions = (b >> 12 & 1023) + 1;
    int64_t line = (b & 4095) + 1;
    int64_t bytes = ways * partitions * line * ((int64_t)c + 1);
    if (level == 1) machine->l1 = bytes;
    if (level == 2) machine->l2 = bytes;
    if (level == 3) {
      machine->l3 = bytes;
      machine->threads_per_l3 = (int32_t)(a >> 14 & 4095) + 1;
    }
  }
}

void te_select_detect_cpu(te_select_machine* machine) {
  uint32_t most, a, b, c, d;
  __cpuid(0, most, b, c, d);
  memcpy(machine->vendor, &b, 4);
  memcpy(machine->vendor + 4, &d, 4);
  memcpy(machine->vendor + 8, &c, 4);
  __cpuid(1, a, b, c, d);
  uint32_t family = a >> 8 & 15;
  uint32_t model = a >> 4 & 15;
  if (family == 6 || family == 15) model |= a >> 12 & 0xf0;
  if (family == 15) family += a >> 20 & 255;
  machine->family = (int32_t)family;
  machine->model = (int32_t)model;
  if (most >= 7) {
    __cpuid_count(7, 0, a, b, c, d);
    machine->has_avx512 = b >> 16 & 1;
    machine->has_amx = d >> 24 & 1;
  }
  __cpuid(0x80000000, a, b, c, d);
  if (!strcmp(machine->vendor, "AuthenticAMD") || !strcmp(machine->vendor, "HygonGenuine")) {
    if (a >= 0x8000001D) read_caches(machine, 0x8000001D);
  } else if (most >= 4) {
    read_caches(machine, 4);
  }
}
#else
void te_select_detect_cpu(te_select_machine* machine) { te_select_detect_by_sysfs(machine); }
#endif
