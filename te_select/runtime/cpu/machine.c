/* Detects the machine by CPUID, which needs no privilege, or by files, and chooses its decisions.
 *
 * They come from a table of measured and reasoned profiles below, then from the file of the user's
 * own measurements, then from TE_SELECT_PROFILE. sysconf is not asked: on AMD it counts the caches of
 * a whole package (glibc reads leaf 0x80000006).
 */
#define _GNU_SOURCE
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#else
#include "sysfs.h"
#endif

#define KB (INT64_C(1) << 10)
#define MB (INT64_C(1) << 20)
#define NEVER (INT64_C(1) << 60)

enum { PATH_BYTES = 1024, LINE_BYTES = 256, DATA = 1, UNIFIED = 3 };

static te_select_machine machine;
static char bad_profile[160];
static char origin_text[96];

/* ---- detection ---------------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* Leaf 4 of Intel, and 0x8000001D of AMD, list caches one by one in the same form. */
static void read_caches(uint32_t leaf) {
  for (uint32_t i = 0; i < 16; ++i) {
    uint32_t a, b, c, d;
    __cpuid_count(leaf, i, a, b, c, d);
    uint32_t type = a & 31, level = a >> 5 & 7;
    if (!type) break;
    if (type != DATA && type != UNIFIED) continue;
    int64_t ways = (b >> 22) + 1, partitions = (b >> 12 & 1023) + 1, line = (b & 4095) + 1;
    int64_t bytes = ways * partitions * line * ((int64_t)c + 1);
    if (level == 2) machine.l2 = bytes;
    if (level == 3) {
      machine.l3 = bytes;
      machine.threads_per_l3 = (int32_t)(a >> 14 & 4095) + 1;
    }
  }
}

static void detect(void) {
  uint32_t most, a, b, c, d;
  __cpuid(0, most, b, c, d);
  memcpy(machine.vendor, &b, 4);
  memcpy(machine.vendor + 4, &d, 4);
  memcpy(machine.vendor + 8, &c, 4);
  __cpuid(1, a, b, c, d);
  uint32_t family = a >> 8 & 15, model = a >> 4 & 15;
  if (family == 6 || family == 15) model |= a >> 12 & 0xf0;
  if (family == 15) family += a >> 20 & 255;
  machine.family = (int32_t)family;
  machine.model = (int32_t)model;
  __cpuid(0x80000000, a, b, c, d);
  if (!strcmp(machine.vendor, "AuthenticAMD") || !strcmp(machine.vendor, "HygonGenuine")) {
    if (a >= 0x8000001D) read_caches(0x8000001D);
  } else if (most >= 4) {
    read_caches(4);
  }
}
#else
static void detect(void) { te_select_detect_by_sysfs(&machine); }
#endif

/* A hypervisor may hide caches, or show those of a machine that is not there. */
static void make_plausible(void) {
  if (machine.l2 < 64 * KB || machine.l2 > 256 * MB) machine.l2 = MB;
  if (machine.l3 < MB || machine.l3 > 2048 * MB) machine.l3 = 32 * MB;
  if (machine.threads_per_l3 < 1) machine.threads_per_l3 = 1;
}

/* ---- profiles ----------------------------------------------------------------------------------- */

/* In units of the caches: per thread of the L2, per L3 of that; thousandths. */
typedef struct {
  const char *name, *vendor;
  int32_t family, first_model, last_model;
  int measured;
  int32_t stream_l2, stream_l3, fill_l2, fill_l3;
  int64_t bytes_per_thread;
  int32_t skip, backwards;
} profile;

/* The first that fits is taken. docs/measurements.md has what the measured ones rest on.
 * Intel's mesh servers have a slow last-level cache: what does not fit the second-level ones is
 * better stored past them all. They compare 20 bits of addresses, so they may walk backwards. */
static const profile profiles[] = {
    {"emeraldrapids", "GenuineIntel", 6, 0xcf, 0xcf, 1, 1000, 0, 4000, 0, 256 * KB, 2, 1},
    {"znver4", "AuthenticAMD", 25, 0x10, 0x1f, 1, 0, 1000, 0, 750, 256 * KB, 1, 0},
    {"sapphirerapids", "GenuineIntel", 6, 0x8f, 0x8f, 0, 1000, 0, 4000, 0, 256 * KB, 2, 1},
    {"graniterapids", "GenuineIntel", 6, 0xad, 0xae, 0, 1000, 0, 4000, 0, 256 * KB, 2, 1},
    {"icelake-server", "GenuineIntel", 6, 0x6a, 0x6c, 0, 1000, 0, 4000, 0, 256 * KB, 2, 1},
    {"skylake-avx512", "GenuineIntel", 6, 0x55, 0x55, 0, 1000, 0, 4000, 0, 256 * KB, 2, 1},
    {"intel", "GenuineIntel", 0, 0, 0, 0, 0, 750, 0, 750, 256 * KB, 2, 1},
    {"amd", "AuthenticAMD", 0, 0, 0, 0, 0, 1000, 0, 750, 256 * KB, 1, 0},
#if defined(__x86_64__)
    {"x86-64", NULL, 0, 0, 0, 0, 0, 1000, 0, 750, 256 * KB, 1, 0},
#elif defined(__aarch64__) /* cores see by themselves that whole lines are written */
    {"aarch64", NULL, 0, 0, 0, 0, 0, 0, 0, 0, 256 * KB, 1, 0},
#else
    {"generic", NULL, 0, 0, 0, 0, 0, 0, 0, 0, 256 * KB, 1, 0},
#endif
};

static int fits(const profile* p) {
  if (p->vendor && strcmp(p->vendor, machine.vendor)) return 0;
  if (!p->family) return 1;
  return p->family == machine.family && p->first_model <= machine.model &&
         machine.model <= p->last_model;
}

static void take_profile(void) {
  const profile* p = profiles;
  while (!fits(p)) ++p;
  te_select_decisions* d = &machine.decisions;
  int never_streams = !p->stream_l2 && !p->stream_l3;
  d->stream_per_thread = never_streams ? NEVER : p->stream_l2 * machine.l2 / 1000;
  d->stream_per_l3 = p->stream_l3 * machine.l3 / 1000;
  d->fill_per_thread = never_streams ? NEVER : p->fill_l2 * machine.l2 / 1000;
  d->fill_per_l3 = p->fill_l3 * machine.l3 / 1000;
  d->bytes_per_thread = p->bytes_per_thread;
  d->skip = p->skip;
  d->backwards = p->backwards;
  snprintf(origin_text, sizeof(origin_text), "%s: %s", p->measured ? "measured" : "reasoned",
           p->name);
  machine.origin = origin_text;
}

/* ---- what the user says ------------------------------------------------------------------------- */

typedef struct {
  const char* key;
  size_t offset;
  int64_t least, most;
} field;

#define FIELD(name, least, most) {#name, offsetof(te_select_decisions, name), least, most}
static const field fields[] = {
    FIELD(stream_per_thread, 0, NEVER),
    FIELD(stream_per_l3, 0, NEVER),
    FIELD(fill_per_thread, 0, NEVER),
    FIELD(fill_per_l3, 0, NEVER),
    FIELD(bytes_per_thread, KB, NEVER),
    FIELD(skip, 0, 2),
    FIELD(backwards, 0, 1),
};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

/* Takes "KEY = VALUE" or "KEY=VALUE"; returns what is wrong with it, or NULL. */
static const char* take_pair(char* pair, te_select_decisions* into) {
  char* equals = strchr(pair, '=');
  if (!equals) return "has no '='";
  char* key = pair + strspn(pair, " \t");
  char* end = equals;
  while (end > key && (end[-1] == ' ' || end[-1] == '\t')) --end;
  size_t length = (size_t)(end - key);
  char* value = equals + 1 + strspn(equals + 1, " \t");
  char* rest;
  if (*value < '0' || *value > '9') return "has a value that is no whole number";
  unsigned long long number = strtoull(value, &rest, 10);
  if (rest[strspn(rest, " \t\r\n")]) return "has a value that is no whole number";
  for (int i = 0; i < FIELDS; ++i) {
    if (strlen(fields[i].key) != length || memcmp(fields[i].key, key, length)) continue;
    if (number < (unsigned long long)fields[i].least ||
        number > (unsigned long long)fields[i].most) {
      return "has a value that is out of range";
    }
    *(int64_t*)((char*)into + fields[i].offset) = (int64_t)number;
    return NULL;
  }
  return "has a key that is not known";
}

/* The user's file for this machine; all of it counts, or nothing. */
static int take_file(const char* path) {
  FILE* file = fopen(path, "re");
  if (!file) return 0;
  te_select_decisions found = machine.decisions;
  char line[LINE_BYTES];
  const char* wrong = NULL;
  int pairs = 0;
  while (!wrong && fgets(line, sizeof(line), file)) {
    char* text = line + strspn(line, " \t\r\n");
    if (!*text || *text == '#') continue;
    wrong = take_pair(text, &found);
    ++pairs;
  }
  fclose(file);
  if (wrong || !pairs) return 0;
  machine.decisions = found;
  return 1;
}

static int user_file(char* path) {
  const char* base = getenv("XDG_CONFIG_HOME");
  const char* home = getenv("HOME");
  char id[64];
  snprintf(id, sizeof(id), "%s-%d-%d-%lld", *machine.vendor ? machine.vendor : "cpu",
           machine.family, machine.model, (long long)(machine.l3 / KB));
  int length =
      base && *base == '/'
          ? snprintf(path, PATH_BYTES, "%s/te-select/machines/%s", base, id)
          : snprintf(path, PATH_BYTES, "%s/.config/te-select/machines/%s", home ? home : "", id);
  return length > 0 && length < PATH_BYTES && *path == '/';
}

static void take_environment(const char* text) {
  te_select_decisions found = machine.decisions;
  char copy[512], pair[LINE_BYTES];
  if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy)) {
    snprintf(bad_profile, sizeof(bad_profile), "TE_SELECT_PROFILE is too long");
    return;
  }
  for (char* at = strtok(copy, ","); at; at = strtok(NULL, ",")) {
    snprintf(pair, sizeof(pair), "%s", at);
    const char* wrong = take_pair(pair, &found);
    if (wrong) {
      snprintf(bad_profile, sizeof(bad_profile), "TE_SELECT_PROFILE: '%.40s' %s", at, wrong);
      for (char* c = bad_profile; *c; ++c) {
        if (*c < ' ' || *c > '~') *c = '?';
      }
      return;
    }
  }
  machine.decisions = found;
  machine.origin = "TE_SELECT_PROFILE";
}

/* ---- the machine -------------------------------------------------------------------------------- */

const te_select_machine* te_select_this_machine(void) { return &machine; }

const char* te_select_bad_profile(void) { return *bad_profile ? bad_profile : NULL; }

int te_select_streams(const te_select_machine* m, int64_t moved, int64_t out, int fill,
                      int32_t threads) {
  const te_select_decisions* d = &m->decisions;
  int64_t caches = (threads + m->threads_per_l3 - 1) / m->threads_per_l3;
  __int128 from =
      fill ? (__int128)d->fill_per_thread * threads + (__int128)d->fill_per_l3 * caches
           : (__int128)d->stream_per_thread * threads + (__int128)d->stream_per_l3 * caches;
  return (fill ? out : moved) >= from;
}

size_t te_select_describe_machine(char* text, size_t size) {
  size_t used = 0;
#define LINE(...)                                                                                 \
  do {                                                                                            \
    int n =                                                                                       \
        snprintf(text + (used < size ? used : size), used < size ? size - used : 0, __VA_ARGS__); \
    if (n > 0) used += (size_t)n;                                                                 \
  } while (0)
  LINE("vendor = %s\nfamily = %d\nmodel = %d\n", machine.vendor, machine.family, machine.model);
  LINE("l2 = %lld\nl3 = %lld\n", (long long)machine.l2, (long long)machine.l3);
  LINE("threads_per_l3 = %d\norigin = %s\n", machine.threads_per_l3, machine.origin);
  for (int i = 0; i < FIELDS; ++i) {
    const void* value = (const char*)&machine.decisions + fields[i].offset;
    LINE("%s = %lld\n", fields[i].key, (long long)*(const int64_t*)value);
  }
#undef LINE
  return used;
}

__attribute__((constructor)) static void look_around(void) {
  detect();
  make_plausible();
  take_profile();
  char path[PATH_BYTES];
  if (user_file(path) && take_file(path)) machine.origin = "measured by the user";
  const char* text = getenv("TE_SELECT_PROFILE");
  if (text && *text) take_environment(text);
}
