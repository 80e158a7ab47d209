/* Asks the OpenMP runtimes of the process whether the caller is in a parallel region. This library
 * is not linked to any runtime, and they have many names. So the loaded libraries are searched, and
 * searched again whenever another library was loaded.
 *
 * The C library holds a lock of the dynamic linker while it lists libraries. A child that is forked
 * meanwhile inherits the lock, and its first dlopen never ends. So a fork waits until no thread of
 * ours has the lock, and calls that come meanwhile run alone.
 */
#define _GNU_SOURCE
#include "openmp.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum {
  MOST_RUNTIMES = 8,
  MOST_YIELDS = 100000 /* of a fork, which may itself be called while libraries are listed */
};
typedef int (*in_parallel)(void);

static _Atomic(in_parallel) runtimes[MOST_RUNTIMES];
static _Atomic int known;               /* how many runtimes there are */
static _Atomic unsigned long long adds; /* libraries that were loaded before the last search */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

static int is_openmp(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  return !strncmp(name, "libgomp", 7) || !strncmp(name, "libomp", 6) ||
         !strncmp(name, "libiomp", 7);
}

static void remember(const char* path) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return;
  in_parallel ask = (in_parallel)dlsym(library, "omp_in_parallel");
  int count = known;
  for (int i = 0; i < count; ++i) {
    if (runtimes[i] == ask) ask = NULL;
  }
  /* The handle is kept open, so that the runtime stays loaded. */
  if (!ask || count == MOST_RUNTIMES) {
    dlclose(library);
    return;
  }
  runtimes[count] = ask;
  known = count + 1;
}

static int look(struct dl_phdr_info* info, size_t size, void* names) {
  (void)size;
  if (is_openmp(info->dlpi_name)) {
    const char** free_name = names;
    while (*free_name) ++free_name;
    if (free_name - (const char**)names < MOST_RUNTIMES) *free_name = info->dlpi_name;
  }
  return 0;
}

static int count_adds(struct dl_phdr_info* info, size_t size, void* count) {
  (void)size;
  *(unsigned long long*)count = info->dlpi_adds;
  return 1; /* every entry has the same number */
}

static _Atomic int listing; /* threads that have the lock, or wait for it */
static _Atomic int forking;

static void begin_fork(void) {
  atomic_fetch_add(&forking, 1);
  for (int i = 0; i < MOST_YIELDS && atomic_load(&listing); ++i) sched_yield();
}

static void end_fork(void) { atomic_fetch_sub(&forking, 1); }

static void begin_child(void) { listing = forking = 0; }

__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(begin_fork, end_fork, begin_child);
}

/* Returns 0 if a fork is under way, and the libraries were not listed. */
static int list(int (*each)(struct dl_phdr_info*, size_t, void*), void* data) {
  atomic_fetch_add(&listing, 1);
  int can = !atomic_load(&forking);
  if (can) dl_iterate_phdr(each, data);
  atomic_fetch_sub(&listing, 1);
  return can;
}

int te_select_in_openmp_region(void) {
  unsigned long long now = 0;
  if (!list(count_adds, &now)) return 1;
  if (now != adds) {
    /* Another thread is looking, perhaps of the same region: this call runs alone. */
    if (pthread_mutex_trylock(&looking)) return 1;
    const char* names[MOST_RUNTIMES + 1] = {NULL};
    int listed = list(look, names); /* dlopen is not allowed inside the callback */
    for (int i = 0; names[i]; ++i) remember(names[i]);
    if (listed) adds = now;
    pthread_mutex_unlock(&looking);
    if (!listed) return 1;
  }
  int count = known;
  for (int i = 0; i < count; ++i) {
    in_parallel ask = runtimes[i];
    if (ask()) return 1;
  }
  return 0;
}
