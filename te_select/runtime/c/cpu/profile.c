/* Decides by the machine: first by a table of models and rules for traits, then by the file of the
 * user's own measurements, then by TE_SELECT_PROFILE. The last one that says something
 * counts. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine.h"
#include "task.h"

#define KB (INT64_C(1) << 10)
#define MB (INT64_C(1) << 20)

enum { FILE_BYTES = 1 << 16 };

/* ---- profiles ----------------------------------------------------------------------------------- */

/* The least bytes for stores past the cache, in thousandths of the caches; see
 * te_select_decisions in machine.h. */
typedef struct {
  int32_t stream_l2;      /* of the second-level cache, for each thread */
  int32_t stream_l2_once; /* of the second-level cache, added for each last-level cache */
  int32_t stream_l3_each; /* of the last-level cache, for each thread */
  int32_t fill_l2, fill_l3_each;
  int32_t skip, backwards;
  int32_t thread_kb; /* KB moved for which one more thread pays; 0: BYTES_PER_THREAD */
} rule;

/* Intel's mesh servers have a slow last-level cache, so outputs that do not fit into the second-
 * level caches go past both. They compare 20 bits of addresses, so walking backwards helps. The
 * figures are those of Emerald Rapids; of fills, the middle of three machines. */
static const rule mesh = {
    .stream_l2 = 1000, .stream_l2_once = 400, .fill_l2 = 1200, .skip = 2, .backwards = 1};
/* Other last-level caches are fast, and the reader of the output finds it there. A call's share of an
 * L3 grows with its threads, not with the L3: one core can fill only so much, and other tenants use
 * the rest. The figures are the middle of the three generations of AMD that were measured. */
static const rule amd = {.stream_l3_each = 500, .fill_l3_each = 400, .skip = 1};
static const rule intel = {.stream_l3_each = 500, .fill_l3_each = 400, .skip = 2, .backwards = 1};

/* What differs from the rule of amd: 0.83 and 0.82 times its bytes. */
static const rule zen3 = {.stream_l3_each = 417, .fill_l3_each = 328, .skip = 1};
/* 1.2 and 1.4 times. */
static const rule zen4 = {.stream_l3_each = 600, .fill_l3_each = 550, .skip = 1};
/* 1.2 and 1.75 times. One thread alone stores past the cache as fast as two, and fills the cache at
 * half their speed, so that another thread wants 1.5 times the bytes. */
static const rule zen5 = {.stream_l3_each = 600, .fill_l3_each = 700, .skip = 1, .thread_kb = 384};

/* The first that fits is taken. Those of a family and its models were measured, see
 * docs/measurements.md; the others go by the traits of a machine. */
static const struct profile {
  const char *name, *vendor;
  int32_t family, first_model, last_model;
  const rule* rule; /* NULL: never past the cache; cores notice whole lines that are overwritten */
} profiles[] = {
    {"znver3", "AuthenticAMD", 25, 0x00, 0x0f, &zen3},
    {"znver4", "AuthenticAMD", 25, 0x10, 0x1f, &zen4},
    {"znver5", "AuthenticAMD", 26, 0x00, 0x1f, &zen5},
    {"mesh", "GenuineIntel", 0, 0, 0, &mesh},
    {"intel", "GenuineIntel", 0, 0, 0, &intel},
    {"amd", "AuthenticAMD", 0, 0, 0, &amd},
#if defined(__x86_64__)
    {"x86-64", NULL, 0, 0, 0, &amd},
#else
    {"generic", NULL, 0, 0, 0, NULL},
#endif
};

/* Bytes moved for which one more thread was worth it, on Emerald Rapids and on Zen 4. */
#define BYTES_PER_THREAD (256 * KB)

/* The largest cache of a group of cores is one of 96 MB. More is a package's, which hypervisors show. */
#define MOST_L3 (128 * MB)

/* Servers of Intel, from Skylake on. */
static int is_server_by_number(const te_select_machine* m) {
  static const uint8_t models[] = {0x55, 0x6a, 0x6c, 0x8f, 0xad, 0xae, 0xaf, 0xcf, 0xdd};
  return m->family == 6 && memchr(models, m->model, sizeof(models)) != NULL;
}

/* A hypervisor may show the number of another model, and hide features. So any one of these will do:
 * AMX, an L3 that only servers have, or AVX-512 beside an L2 that no other Intel with AVX-512 has. Those
 * have 512 KB or less, but Tiger Lake has 1.25 MB, and an L3 of 24 MB. No server has less than 1 MB. */
static int is_mesh(const te_select_machine* m) {
  if (m->has_amx || m->l3 >= 64 * MB) return 1;
  if (m->l2 < MB) return 0;
  if (m->has_avx512 && (m->l2 != 1280 * KB || m->l3 > 30 * MB)) return 1;
  return is_server_by_number(m);
}

static int fits(const struct profile* p, const te_select_machine* m) {
  if (p->vendor && strcmp(p->vendor, m->vendor)) return 0;
  if (p->rule == &mesh) return is_mesh(m);
  if (!p->family) return 1;
  return p->family == m->family && p->first_model <= m->model && m->model <= p->last_model;
}

static void take_table(te_select_machine* m) {
  const struct profile* p = profiles;
  while (!fits(p, m)) ++p;
  m->decisions = (te_select_decisions){
      .stream_per_thread = TE_SELECT_NEVER,
      .fill_per_thread = TE_SELECT_NEVER,
      .bytes_per_thread = BYTES_PER_THREAD,
      .fill_reads = 50,
      .skip = TE_SELECT_SKIP_IN_RUNS,
  };
  const rule* r = p->rule;
  if (r) {
    int64_t l3 = m->l3 < MOST_L3 ? m->l3 : MOST_L3;
    m->decisions.stream_per_thread = (r->stream_l2 * m->l2 + r->stream_l3_each * l3) / 1000;
    m->decisions.stream_per_l3 = r->stream_l2_once * m->l2 / 1000;
    m->decisions.fill_per_thread = (r->fill_l2 * m->l2 + r->fill_l3_each * l3) / 1000;
    if (r->thread_kb) m->decisions.bytes_per_thread = r->thread_kb * KB;
    m->decisions.skip = r->skip;
    m->decisions.backwards = r->backwards;
  }
  snprintf(
      m->origin, sizeof(m->origin), "%s: %s%s", p->family ? "measured" : "reasoned", p->name,
      r == &mesh && !is_server_by_number(m) ? ", though its number is of no known server" : "");
}

/* ---- what the user says ------------------------------------------------------------------------- */

typedef struct {
  const char* key;
  size_t offset;
  int64_t least, most;
} field;

#define FIELD(name, least, most) {#name, offsetof(te_select_decisions, name), least, most}
static const field fields[] = {
    FIELD(stream_per_thread, 0, TE_SELECT_NEVER),
    FIELD(stream_per_l3, 0, TE_SELECT_NEVER),
    FIELD(fill_per_thread, 0, TE_SELECT_NEVER),
    FIELD(fill_per_l3, 0, TE_SELECT_NEVER),
    FIELD(fill_reads, 0, TE_SELECT_NEVER),
    FIELD(bytes_per_thread, KB, TE_SELECT_NEVER),
    FIELD(skip, 0, 2),
    FIELD(backwards, 0, 1),
};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };
_Static_assert(FIELDS * sizeof(int64_t) == sizeof(te_select_decisions), "a field for each");

/* Takes "KEY = VALUE" or "KEY=VALUE"; returns what is wrong with it, or NULL. */
static const char* take_pair(const char* pair, te_select_decisions* into) {
  char key[32], *rest;
  int value = 0;
  if (!strchr(pair, '=')) return "has no '='";
  if (sscanf(pair, " %31[^= \t] = %n", key, &value) < 1 || !value)
    return "has a key that is not known";
  unsigned long long number = strtoull(pair + value, &rest, 10);
  if (pair[value] < '0' || pair[value] > '9' || rest[strspn(rest, " \t\r\n")]) {
    return "has a value that is no whole number";
  }
  for (int i = 0; i < FIELDS; ++i) {
    if (strcmp(fields[i].key, key)) continue;
    if (number < (unsigned long long)fields[i].least ||
        number > (unsigned long long)fields[i].most) {
      return "has a value that is out of range";
    }
    *(int64_t*)((char*)into + fields[i].offset) = (int64_t)number;
    return NULL;
  }
  return "has a key that is not known";
}

static void find_user_file(te_select_machine* m) {
  const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME"), *below = "";
  if (!base || *base != '/') { /* the XDG specification says to ignore a relative path */
    base = home && *home == '/' ? home : NULL;
    below = "/.config";
  }
  if (!base) return;
  int length =
      snprintf(m->file, sizeof(m->file), "%s%s/te-select/machines/%s-%d-%d-%lld", base, below,
               *m->vendor ? m->vendor : "cpu", m->family, m->model, (long long)(m->l3 / KB));
  if (length >= (int)sizeof(m->file) || strchr(m->file, '\n'))
    *m->file = 0; /* it is told in a line */
}

/* Takes the user's file for this machine. If one line is wrong, the whole file is ignored. */
static void take_file(te_select_machine* m) {
  struct stat status;
  int opened = open(m->file, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* it may be a pipe */
  if (opened < 0 || fstat(opened, &status)) return;
  if (!S_ISREG(status.st_mode) || status.st_size > FILE_BYTES) {
    strcpy(m->file_problem, "it is no regular file of at most 64 KB");
    close(opened);
    return;
  }
  FILE* file = fdopen(opened, "r");
  if (!file) return;
  te_select_decisions found = m->decisions;
  char* line = NULL;
  size_t room = 0;
  ssize_t length;
  int number = 0, pairs = 0;
  const char* wrong = NULL;
  for (; !wrong && (length = getline(&line, &room, file)) >= 0; ++number) {
    if (strlen(line) < (size_t)length) wrong = "has a byte of 0";
    const char* text = line + strspn(line, " \t\r\n");
    if (wrong || !*text || *text == '#') continue;
    wrong = take_pair(text, &found);
    ++pairs;
  }
  free(line);
  fclose(file);
  if (wrong) {
    snprintf(m->file_problem, sizeof(m->file_problem), "line %d %s", number, wrong);
  } else if (!pairs) {
    snprintf(m->file_problem, sizeof(m->file_problem), "it is empty");
  } else {
    m->decisions = found;
    strcpy(m->origin, "measured by the user");
  }
}

static void take_environment(te_select_machine* m, const char* text) {
  te_select_decisions found = m->decisions;
  char copy[512];
  if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy)) {
    strcpy(m->profile_problem, "TE_SELECT_PROFILE is too long");
    return;
  }
  for (char *rest, *at = strtok_r(copy, ",", &rest); at; at = strtok_r(NULL, ",", &rest)) {
    const char* wrong = take_pair(at, &found);
    if (wrong) {
      char quoted[41];
      te_select_quote(quoted, sizeof(quoted), at);
      snprintf(m->profile_problem, sizeof(m->profile_problem), "TE_SELECT_PROFILE: '%s' %s", quoted,
               wrong);
      return;
    }
  }
  m->decisions = found;
  strcpy(m->origin, "TE_SELECT_PROFILE");
}

/* ---- the machine as a whole --------------------------------------------------------------------- */

#if defined(__x86_64__)
enum { STREAMS = 1 };
#else
enum { STREAMS = 0 }; /* by default spans have none: `streams` in schedules/cpu/isa.py */
#endif

__int128 te_select_streams_from(const te_select_machine* m, int is_fill, int32_t threads) {
  if (!STREAMS) return TE_SELECT_NEVER;
  const te_select_decisions* d = &m->decisions;
  int64_t caches = te_select_ceil_div(threads, m->threads_per_l3);
  int64_t each = is_fill ? d->fill_per_thread : d->stream_per_thread;
  int64_t per_l3 = is_fill ? d->fill_per_l3 : d->stream_per_l3;
  __int128 of_threads = (__int128)each * threads, most = (__int128)(m->l3 + m->l3 / 4) * caches;
  if (each < TE_SELECT_NEVER && of_threads > most) of_threads = most;
  return of_threads + (__int128)per_l3 * caches;
}

static void describe(te_select_machine* m) {
  FILE* file = fmemopen(m->text, sizeof(m->text), "w");
  if (!file) return;
  fprintf(file, "vendor = %s\nfamily = %d\nmodel = %d\n", m->vendor, m->family, m->model);
  fprintf(file, "l1 = %lld\nl2 = %lld\n", (long long)m->l1, (long long)m->l2);
  fprintf(file, "l3 = %lld\n", (long long)m->l3);
  fprintf(file, "threads_per_l3 = %d\nthreads = %d\n", m->threads_per_l3, m->max_threads);
  fprintf(file, "origin = %s\n", m->origin);
  for (int i = 0; i < FIELDS; ++i) {
    const void* value = (const char*)&m->decisions + fields[i].offset;
    fprintf(file, "%s = %lld\n", fields[i].key, (long long)*(const int64_t*)value);
  }
  for (int is_fill = 0; is_fill < 2; ++is_fill) { /* of calls on all threads */
    __int128 from = te_select_streams_from(m, is_fill, m->max_threads);
    fprintf(file, "%s_past_the_cache = %lld\n", is_fill ? "fills" : "stores",
            (long long)(from < TE_SELECT_NEVER ? from : TE_SELECT_NEVER));
  }
  fprintf(file, "file = %s\nbad_file = %s\n", m->file, m->file_problem);
  fprintf(file, "bad_profile = %s\n",
          *m->threads_problem ? m->threads_problem : m->profile_problem);
  fclose(file);
}

void te_select_take_profile(te_select_machine* m) {
  /* A hypervisor may hide caches, or show those of another machine. */
  if (m->l1 < 16 * KB || m->l1 > MB) m->l1 = 32 * KB;
  if (m->l2 < 64 * KB || m->l2 > 256 * MB) m->l2 = MB;
  if (m->l3 < MB || m->l3 > 2048 * MB) m->l3 = 32 * MB;
  if (m->threads_per_l3 < 1) m->threads_per_l3 = 1;
  take_table(m);
  find_user_file(m);
  take_file(m);
  const char* text = getenv("TE_SELECT_PROFILE");
  if (text && *text) take_environment(m, text);
  m->small_below = te_select_large_from(m->decisions.bytes_per_thread);
  for (int is_fill = 0; is_fill < 2; ++is_fill) {
    __int128 from = te_select_streams_from(m, is_fill, 1);
    if (from < m->small_below) m->small_below = (int64_t)from;
  }
  describe(m);
}

const char* te_select_find_machine(te_select_machine* m) {
  memset(m, 0, sizeof(*m));
  te_select_detect_cpu(m);
  te_select_count_threads(m);
  te_select_take_profile(m);
  return m->text;
}
