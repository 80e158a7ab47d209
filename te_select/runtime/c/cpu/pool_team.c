/* Calls on the OpenMP team of the program.
 *
 * After a parallel region, the threads of OpenMP spin for some milliseconds, and helpers would wait for
 * their cores. So a call that comes then is done by them. The evidence is the pool's own: helpers that
 * come late. Only a runtime that the program has loaded is used, and only while a thread of the team is
 * on a CPU: after a pause, a region takes 5.5 ms to begin (Emerald Rapids).
 *
 * A team belongs to the thread that calls. The runtime's thread-local memory shows whether the thread has
 * used it; if not, a call would start a team. That may still happen once: then no other team is tried.
 *
 * Regions have the program's own number of threads. With another, the runtime would end or start
 * threads, and the program's next region would pay for it. */
#define _GNU_SOURCE
#include "pool_team.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pool_cores.h"
#include "pool_tasks.h"

enum {
  LATE_NS = 200000,         /* a team that comes so late shares its cores with other programs */
  LATE_FOR_NS = 2000000,    /* so long it is not asked; twice as long the next time ... */
  MOST_LATE_NS = 256000000, /* ... up to this */
  MOST_LIBRARIES = 64       /* with thread-local memory */
};

/* ---- runtimes --------------------------------------------------------------------------------- */

typedef struct {
  te_select_pool* pool;
  unsigned long long loaded;
  int32_t count;
  struct {
    char* name;
    te_select_runtime found;
  } libraries[MOST_LIBRARIES];
} search;

#pragma weak dladdr1 /* glibc alone has it, and a static library may be linked with another */

struct link_map* te_select_library_of(void* address) {
  Dl_info info;
  struct link_map* map = NULL;
  if (dladdr1) dladdr1(address, &info, (void**)&map, RTLD_DL_LINKMAP);
  return map;
}

static int note_library(struct dl_phdr_info* info, __attribute__((unused)) size_t size,
                        void* data) {
  search* s = data;
  if (info->dlpi_adds == s->pool->loaded) return 1;
  s->loaded = info->dlpi_adds;
  for (int i = 0; i < info->dlpi_phnum && s->count < MOST_LIBRARIES; ++i) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_TLS || !info->dlpi_tls_data || !*info->dlpi_name) continue;
    s->libraries[s->count].found = (te_select_runtime){
        .memory = (intptr_t)info->dlpi_tls_data - (intptr_t)pthread_self(),
        .bytes = segment->p_memsz,
        .image_bytes = segment->p_filesz,
        .image = (const char*)(info->dlpi_addr + segment->p_vaddr),
    };
    s->libraries[s->count++].name = strdup(info->dlpi_name);
  }
  return 0;
}

/* Takes a library if it is a runtime. */
static void take_library(te_select_pool* p, const char* name, te_select_runtime* found) {
  int32_t count = p->runtimes;
  struct link_map* map = name ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (!map) return;
  void* symbol = dlsym(map, "GOMP_parallel");
  int is_new = symbol && count < TE_SELECT_MOST_RUNTIMES && te_select_library_of(symbol) == map;
  memcpy(&found->parallel, &symbol, sizeof(symbol));
  for (int32_t i = 0; i < count; ++i) is_new &= p->runtime[i].parallel != found->parallel;
  if (is_new && dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)) {
    void* const others[] = {dlsym(map, "omp_in_parallel"), dlsym(map, "omp_get_max_threads"),
                            dlsym(map, "omp_get_thread_num")};
    memcpy(&found->in_parallel, &others[0], sizeof(void*));
    memcpy(&found->max_threads, &others[1], sizeof(void*));
    memcpy(&found->thread_number, &others[2], sizeof(void*));
    p->runtime[count] = *found;
    if (others[0] && others[1] && others[2]) p->runtimes = count + 1;
  }
  dlclose(map);
}

/* In a new thread: an older one may not have the addresses of all thread-local memory. */
static void* look_for_runtimes(void* data) {
  search* s = data;
  te_select_pool* p = s->pool;
  pthread_setname_np(pthread_self(), "te_select_find"); /* not the name of a helper, who made it */
  dl_iterate_phdr(note_library, s);
  for (int32_t i = 0; i < s->count; ++i) {
    take_library(p, s->libraries[i].name, &s->libraries[i].found);
    free(s->libraries[i].name);
  }
  if (s->loaded) p->loaded = s->loaded;
  p->search = TE_SELECT_SEARCH_NONE;
  free(s);
  return NULL;
}

void te_select_look_for_runtimes(te_select_pool* p) {
  int32_t wanted = TE_SELECT_SEARCH_WANTED;
  if (!atomic_compare_exchange_strong(&p->search, &wanted, TE_SELECT_SEARCH_BEGUN)) return;
  search* s = calloc(1, sizeof(*s));
  pthread_t thread;
  if (s) s->pool = p;
  if (s && !pthread_create(&thread, NULL, look_for_runtimes, s)) {
    pthread_detach(thread);
  } else {
    free(s);
    p->search = TE_SELECT_SEARCH_NONE;
  }
}

int te_select_in_region(te_select_pool* p) {
  for (int32_t i = 0; i < p->runtimes; ++i) {
    if (p->runtime[i].in_parallel()) return 1;
  }
  return 0;
}

/* ---- teams ------------------------------------------------------------------------------------ */

/* Whether this thread has used a runtime. */
static int has_used(const te_select_runtime* r) {
  const char* memory = (const char*)((intptr_t)pthread_self() + r->memory);
  int is_written = memcmp(memory, r->image, r->image_bytes) != 0;
  for (size_t i = r->image_bytes; i < r->bytes; ++i) is_written |= memory[i];
  return is_written;
}

/* The caller's team of a runtime. A new one takes a place that is free, or whose threads have ended;
 * NULL if it would be a mistake, or there is no place. */
static te_select_team* team_of_caller(te_select_pool* p, const te_select_runtime* r) {
  te_select_team* place = NULL;
  for (int32_t i = 0; i < TE_SELECT_MOST_TEAMS; ++i) {
    te_select_team* team = &p->teams[i];
    int is_gone = !team->of || te_select_read_clock(team->clock) < 0;
    if (is_gone) {
      place = team;
    } else if (team->of == r && pthread_equal(team->caller, pthread_self())) {
      return team;
    }
  }
  if (!place || p->started_a_team || !has_used(r)) return NULL;
  *place = (te_select_team){.caller = pthread_self(), .of = r, .late_for_ns = LATE_FOR_NS};
  return pthread_getcpuclockid(pthread_self(), &place->clock) ? NULL : place;
}

/* Whether a team may be asked: one of its threads is on a CPU, so its time goes on; or nobody knows. */
static int is_at_work(const te_select_team* team) {
  if (te_select_now_ns() < team->late_until_ns) return 0;
  if (!team->is_known) return 1;
  if (!team->has_others) return 0;
  int64_t before = te_select_read_clock(team->clock);
  return te_select_read_clock(team->clock) != before;
}

void te_select_take_team(te_select_pool* p, te_select_crew* crew) {
  for (int32_t i = 0; i < p->runtimes; ++i) {
    int32_t most = p->runtime[i].max_threads();
    te_select_team* team = most > 1 ? team_of_caller(p, &p->runtime[i]) : NULL;
    if (!team || !is_at_work(team)) continue;
    if (most < crew->threads) crew->threads = most;
    crew->team = (int32_t)(team - p->teams) + 1;
    return;
  }
  if (p->by_team) te_select_forget_crowd(p);
  p->by_team = 0;
}

typedef struct {
  te_select_pool* pool;
  te_select_team* team;
  int32_t threads;
  uint32_t by_caller; /* tasks */
  int64_t end;        /* of the caller's part */
} region;

static void run_thread(void* data) {
  region* r = data;
  int32_t number = r->team->of->thread_number();
  if (number == 1) r->team->has_others = !pthread_getcpuclockid(pthread_self(), &r->team->clock);
  if (number >= r->threads) return;
  uint32_t done = te_select_do_tasks(r->pool, number, r->threads, te_select_now_ns());
  if (number) return;
  r->by_caller = done;
  r->end = te_select_now_ns();
}

/* As the system counts them; 0 if it does not say. */
static uint64_t count_threads(void) {
  struct stat tasks;
  return stat("/proc/self/task", &tasks) ? 0 : tasks.st_nlink;
}

uint32_t te_select_run_on_team(te_select_pool* p, int32_t number, int32_t threads) {
  te_select_team* team = &p->teams[number - 1];
  region r = {.pool = p, .team = team, .threads = threads};
  enum { NUMBER_OF_PROGRAM = 0, NO_FLAGS = 0 };
  if (!pthread_equal(team->caller, pthread_self())) { /* another thread has taken its place */
    return te_select_do_tasks(p, 0, threads, te_select_now_ns());
  }
  uint64_t before = team->is_known ? 0 : count_threads();
  team->of->parallel(run_thread, &r, NUMBER_OF_PROGRAM, NO_FLAGS);
  int64_t now = te_select_now_ns();
  if (!team->is_known && count_threads() > before) {
    p->started_a_team = 1;
    team->has_others = 0;
  }
  team->is_known = 1;
  p->by_team = now - r.end <= LATE_NS;
  if (p->by_team) {
    team->late_for_ns -= (team->late_for_ns - LATE_FOR_NS) / 16;
  } else {
    team->late_until_ns = now + team->late_for_ns;
    team->late_for_ns = team->late_for_ns < MOST_LATE_NS / 2 ? 2 * team->late_for_ns : MOST_LATE_NS;
  }
  return r.by_caller;
}
