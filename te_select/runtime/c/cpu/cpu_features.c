/* CPU features: CPUID and XGETBV on x86-64, the auxiliary vector on aarch64, hwprobe on riscv64. */
#include "cpu_features.h"

#include <stdint.h>
#include <string.h>

#define FEATURES (sizeof(features) / sizeof(*features))

#if defined(__x86_64__)

#include <cpuid.h>

enum { EBX = 1, ECX, EDX };
enum { NO_STATE = 0, YMM = 0x6, ZMM = 0xe6 }; /* registers the system must save: bits of XCR0 */

static const struct {
  const char* name;
  uint32_t leaf;
  int reg, bit;
  uint32_t state;
} features[] = {
    {"pni", 1, ECX, 0, NO_STATE},
    {"ssse3", 1, ECX, 9, NO_STATE},
    {"sse4_1", 1, ECX, 19, NO_STATE},
    {"sse4_2", 1, ECX, 20, NO_STATE},
    {"movbe", 1, ECX, 22, NO_STATE},
    {"popcnt", 1, ECX, 23, NO_STATE},
    {"fma", 1, ECX, 12, YMM},
    {"avx", 1, ECX, 28, YMM},
    {"f16c", 1, ECX, 29, YMM},
    {"bmi1", 7, EBX, 3, NO_STATE},
    {"bmi2", 7, EBX, 8, NO_STATE},
    {"avx2", 7, EBX, 5, YMM},
    {"avx512f", 7, EBX, 16, ZMM},
    {"avx512dq", 7, EBX, 17, ZMM},
    {"avx512cd", 7, EBX, 28, ZMM},
    {"avx512bw", 7, EBX, 30, ZMM},
    {"avx512vl", 7, EBX, 31, ZMM},
    {"gfni", 7, ECX, 8, NO_STATE},
    {"avx512vbmi", 7, ECX, 1, ZMM},
    {"avx512_vbmi2", 7, ECX, 6, ZMM},
    {"avx512_bitalg", 7, ECX, 12, ZMM},
    {"avx512_vpopcntdq", 7, ECX, 14, ZMM},
    {"avx512_fp16", 7, EDX, 23, ZMM},
    {"abm", 0x80000001, ECX, 5, NO_STATE},
    {"sse4a", 0x80000001, ECX, 6, NO_STATE},
    {"tbm", 0x80000001, ECX, 21, NO_STATE},
    {"xop", 0x80000001, ECX, 11, YMM},
    {"fma4", 0x80000001, ECX, 16, YMM},
};

static uint32_t saved_state(void) {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0; /* no OSXSAVE */
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return a;
}

int te_select_cpu_has(const char* name) {
  for (unsigned i = 0; i < FEATURES; ++i) {
    uint32_t found[4];
    uint32_t state = features[i].state;
    if (strcmp(features[i].name, name)) continue;
    return (saved_state() & state) == state &&
           __get_cpuid_count(features[i].leaf, 0, &found[0], &found[EBX], &found[ECX],
                             &found[EDX]) &&
           found[features[i].reg] >> features[i].bit & 1;
  }
  return 0;
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

enum { FIRST = AT_HWCAP, SECOND = AT_HWCAP2 };

/* The bits are fixed by Linux. They are written out because old headers lack some of the names. */
static const struct {
  const char* name;
  unsigned long list;
  int bit;
} features[] = {
    {"fp", FIRST, 0},       {"asimd", FIRST, 1},     {"crc32", FIRST, 7},  {"atomics", FIRST, 8},
    {"asimdhp", FIRST, 10}, {"asimdrdm", FIRST, 12}, {"lrcpc", FIRST, 15}, {"sha3", FIRST, 17},
    {"asimddp", FIRST, 20}, {"i8mm", SECOND, 13},    {"bf16", SECOND, 14}, {"cssc", SECOND, 34},
    {"mops", SECOND, 43},
};

int te_select_cpu_has(const char* name) {
  for (unsigned i = 0; i < FEATURES; ++i) {
    if (!strcmp(features[i].name, name)) return getauxval(features[i].list) >> features[i].bit & 1;
  }
  return 0;
}

#elif defined(__riscv)

#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Fixed by Linux. They are written out because old headers lack the names. */
enum { HWPROBE = 258, IMA_EXT_0 = 4, IMA_V = 1 << 2, V_GET_CONTROL = 70, STATE = 3, OFF = 1 };
enum { LONGEST = 128 }; /* bytes of a register; longer ones were not tried */
static const struct { const char* name; } features[] = {{"v"}};

/* Linux before 6.4 has no hwprobe. Some vendors' kernels of that time give RVV 0.7.1 the bit of V,
 * too: it has no "ta, ma", and vsetvli makes the type invalid, which is its sign. */
static int auxv_has_rvv_1_0(void) {
  if (!(getauxval(AT_HWCAP) >> ('v' - 'a') & 1)) return 0;
  long type;
  __asm__ volatile(
      ".word 0x0c0072d7\n\t" /* vsetvli t0, zero, e8, m1, ta, ma: old assemblers do not know it */
      "csrr %0, 0xc21"       /* vtype */
      : "=r"(type)
      :
      : "t0");
  return type >= 0;
}

static int has_rvv_1_0(void) {
  struct {
    int64_t key;
    uint64_t value;
  } pair = {IMA_EXT_0, 0};
  if ((prctl(V_GET_CONTROL, 0, 0, 0, 0) & STATE) == OFF) return 0; /* vectors would be illegal */
  if (syscall(HWPROBE, &pair, 1, 0, NULL, 0)) return auxv_has_rvv_1_0();
  return (pair.value & IMA_V) != 0;
}

int te_select_cpu_has(const char* name) {
  if (strcmp(name, "v") || !has_rvv_1_0()) return 0;
  long bytes;
  __asm__("csrr %0, 0xc22" : "=r"(bytes)); /* vlenb */
  return bytes <= LONGEST;                 /* else what LLVM puts on the stack may not fit there */
}

#endif

void te_select_list_cpu_features(char text[TE_SELECT_CPU_FEATURES_BYTES]) {
  *text = 0;
  for (unsigned i = 0; i < FEATURES; ++i) {
    const char* name = features[i].name;
    if (te_select_cpu_has(name)) text = stpcpy(stpcpy(text, name), " ");
  }
}
