/* Opens a library for itself alone, and calls its function `run` if there is one. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef _OPENMP
#include <omp.h>

int (*needed)(void) = omp_get_max_threads; /* so that the runtime is loaded */
#endif

int main(int count, char** arguments) {
  void* opened = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!opened) return puts(dlerror());
  int (*run)(void) = (int (*)(void))dlsym(opened, "run");
  return run ? run() : 0;
}
