/* How a thread rounds, and whether it takes subnormal numbers for zeros. Conversions on other threads
 * are done as on the caller's: a thread of the pool has the mode of the thread that started it. */
#pragma once

#include <stdint.h>

#if defined(__x86_64__)
static inline uint64_t te_select_float_mode(void) { return __builtin_ia32_stmxcsr(); }
static inline void te_select_set_float_mode(uint64_t mode) {
  __builtin_ia32_ldmxcsr((uint32_t)mode);
}
#elif defined(__aarch64__)
static inline uint64_t te_select_float_mode(void) {
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
static inline void te_select_set_float_mode(uint64_t mode) {
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#elif defined(__riscv_flen)
static inline uint64_t te_select_float_mode(void) {
  uint64_t mode;
  __asm__ volatile("frcsr %0" : "=r"(mode));
  return mode;
}
static inline void te_select_set_float_mode(uint64_t mode) {
  __asm__ volatile("fscsr %0" : : "r"(mode));
}
#else
static inline uint64_t te_select_float_mode(void) { return 0; }
static inline void te_select_set_float_mode(uint64_t mode) { (void)mode; }
#endif
