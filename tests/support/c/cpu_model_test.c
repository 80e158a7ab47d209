/* Detects a CPU whose CPUID leaves are made up. */
#include <cpuid.h>
#include <stdint.h>
#undef __cpuid
#undef __cpuid_count

static struct { uint32_t leaf, index, registers[4]; } leaves[32];
static int count;

static void ask(uint32_t leaf, uint32_t index, uint32_t* a, uint32_t* b, uint32_t* c, uint32_t* d) {
  *a = *b = *c = *d = 0;
  for (int i = 0; i < count; ++i) {
    if (leaves[i].leaf != leaf || leaves[i].index != index) continue;
    *a = leaves[i].registers[0], *b = leaves[i].registers[1];
    *c = leaves[i].registers[2], *d = leaves[i].registers[3];
  }
}
#define __cpuid(leaf, a, b, c, d) ask(leaf, 0, &(a), &(b), &(c), &(d))
#define __cpuid_count(leaf, index, a, b, c, d) ask(leaf, index, &(a), &(b), &(c), &(d))
#include "cpu_model.c"

void put(uint32_t leaf, uint32_t index, const uint32_t* registers) {
  leaves[count].leaf = leaf;
  leaves[count].index = index;
  memcpy(leaves[count++].registers, registers, sizeof(leaves[0].registers));
}

const char* find(void) {
  static te_select_machine machine;
  return te_select_find_machine(&machine);
}
