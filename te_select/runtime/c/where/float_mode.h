/* How a thread rounds, and whether it takes subnormal numbers for zeros. Conversions on other threads
 * are done as on the caller's: a thread of the pool has the mode of the thread that started it. */
#pragma once

#include <stdint.h>

#if defined(__x86_64__)
#define TE_SELECT_READ_MODE(mode) ((mode) = __builtin_ia32_stmxcsr())
#define TE_SELECT_SET_MODE(mode) __builtin_ia32_ldmxcsr((uint32_t)(mode))
#elif defined(__aarch64__)
#define TE_SELECT_READ_MODE(mode) __asm__ volatile("mrs %0, fpcr" : "=r"(mode))
#define TE_SELECT_SET_MODE(mode) __asm__ volatile("msr fpcr, %0" : : "r"(mode))
#elif defined(__riscv_flen)
#define TE_SELECT_READ_MODE(mode) __asm__ volatile("frcsr %0" : "=r"(mode))
#define TE_SELECT_SET_MODE(mode) __asm__ volatile("fscsr %0" : : "r"(mode))
#else
#define TE_SELECT_READ_MODE(mode) (void)(mode)
#define TE_SELECT_SET_MODE(mode) (void)(mode)
#endif

static inline uint64_t te_select_float_mode(void) {
  uint64_t mode = 0;
  TE_SELECT_READ_MODE(mode);
  return mode;
}

static inline void te_select_set_float_mode(uint64_t mode) { TE_SELECT_SET_MODE(mode); }
