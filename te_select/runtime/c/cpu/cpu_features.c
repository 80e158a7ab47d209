/* CPU features: CPUID and XGETBV on x86-64, the auxiliary vector on aarch64, hwprobe on riscv64. */
#include "cpu_features.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>

enum { EBX = 1, ECX, EDX };
enum { NO_STATE = 0, YMM = 0x6, ZMM = 0xe6 }; /* registers the system must save: bits of XCR0 */

/* The names of bits of a register. */
static const struct {
  uint32_t leaf, sub;
  int reg;
  uint32_t state;
  const char* names[32];
} features[] = {
    {1, 0, ECX, NO_STATE, {[0] = "pni", [9] = "ssse3", [19] = "sse4_1", [20] = "sse4_2"}},
    {1, 0, ECX, NO_STATE, {[22] = "movbe", [23] = "popcnt"}},
    {1, 0, ECX, YMM, {[12] = "fma", [28] = "avx", [29] = "f16c"}},
    {7, 0, EBX, NO_STATE, {[3] = "bmi1", [8] = "bmi2"}},
    {7, 0, EBX, YMM, {[5] = "avx2"}},
    {7, 0, EBX, ZMM, {[16] = "avx512f", [17] = "avx512dq", [28] = "avx512cd"}},
    {7, 0, EBX, ZMM, {[30] = "avx512bw", [31] = "avx512vl"}},
    {7, 0, ECX, NO_STATE, {[8] = "gfni"}},
    {7, 0, ECX, ZMM, {[1] = "avx512vbmi", [6] = "avx512_vbmi2", [12] = "avx512_bitalg"}},
    {7, 0, ECX, ZMM, {[14] = "avx512_vpopcntdq"}},
    {7, 0, EDX, ZMM, {[23] = "avx512_fp16"}},
    {0x80000001, 0, ECX, NO_STATE, {[5] = "abm", [6] = "sse4a", [21] = "tbm"}},
    {0x80000001, 0, ECX, YMM, {[11] = "xop", [16] = "fma4"}},
};

enum { NAMES = 32 * sizeof(features) / sizeof(*features) };

static const char* name_of(unsigned i) { return features[i / 32].names[i % 32]; }

static uint32_t saved_state(void) {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0; /* no OSXSAVE */
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return a;
}

int te_select_cpu_has(const char* name) {
  for (unsigned i = 0; i < NAMES; ++i) {
    uint32_t found[4];
    uint32_t leaf = features[i / 32].leaf;
    uint32_t sub = features[i / 32].sub;
    if (!name_of(i) || strcmp(name_of(i), name)) continue;
    uint32_t state = features[i / 32].state;
    return (saved_state() & state) == state &&
           __get_cpuid_count(leaf, sub, &found[0], &found[EBX], &found[ECX], &found[EDX]) &&
           found[features[i / 32].reg] >> i % 32 & 1;
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

enum { NAMES = sizeof(features) / sizeof(*features) };

static const char* name_of(unsigned i) { return features[i].name; }

int te_select_cpu_has(const char* name) {
  for (unsigned i = 0; i < NAMES; ++i) {
    if (!strcmp(name_of(i), name)) return getauxval(features[i].list) >> features[i].bit & 1;
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
enum { NAMES = 1 };

static const char* name_of(__attribute__((unused)) unsigned i) { return "v"; }

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
  if (strcmp(name, name_of(0)) || !has_rvv_1_0()) return 0;
  long bytes;
  __asm__("csrr %0, 0xc22" : "=r"(bytes)); /* vlenb */
  return bytes <= LONGEST;                 /* else what LLVM puts on the stack may not fit there */
}

#endif

void te_select_list_cpu_features(char text[TE_SELECT_CPU_FEATURES_BYTES]) {
  *text = 0;
  for (unsigned i = 0; i < NAMES; ++i) {
    if (name_of(i) && te_select_cpu_has(name_of(i))) text = stpcpy(stpcpy(text, name_of(i)), " ");
  }
}
