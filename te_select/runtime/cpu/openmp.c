/* Asks the OpenMP runtimes of the process whether the caller is in a parallel region. This library
 * is not linked to any runtime, and they have many names. So the loaded libraries are searched, and
 * searched again whenever another library was loaded. */
#define _GNU_SOURCE
#include "openmp.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_RUNTIMES = 8 };
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

int te_select_in_openmp_region(void) {
  unsigned long long now = 0;
  dl_iterate_phdr(count_adds, &now);
  if (now != adds) {
    /* Another thread is looking, perhaps of the same region: this call runs alone. */
    if (pthread_mutex_trylock(&looking)) return 1;
    const char* names[MOST_RUNTIMES + 1] = {NULL};
    dl_iterate_phdr(look, names); /* dlopen is not allowed inside the callback */
    for (int i = 0; names[i]; ++i) remember(names[i]);
    adds = now;
    pthread_mutex_unlock(&looking);
  }
  int count = known;
  for (int i = 0; i < count; ++i) {
    in_parallel ask = runtimes[i];
    if (ask()) return 1;
  }
  return 0;
}
