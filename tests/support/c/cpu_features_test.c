/* The features of a CPU and a system that are made up: all bits, and the registers that are saved. */
#include <cpuid.h>
#include <stdint.h>
#include <string.h>

uint32_t bits = ~0u, saved;
static int answer(uint32_t leaf, uint32_t* a, uint32_t* b, uint32_t* c, uint32_t* d) {
  *a = *b = *c = *d = bits;
  return leaf != 0;
}
#define __get_cpuid(leaf, a, b, c, d) answer(leaf, a, b, c, d)
#define __get_cpuid_count(leaf, sub, a, b, c, d) answer(leaf + sub, a, b, c, d)
#define volatile(...) (a = saved, d = 0) /* what xgetbv says */
#define __asm__
#include "cpu_features.c"
