/* Loads a library in a thread with a small stack, and calls its kernel there. Arguments: the library,
 * its function and the bytes of the stack. Prints how many threads the pool has. */
#include <dlfcn.h>
#include <pthread.h>

static int (*kernel)(const void*, const void*, const void*, void*, int64_t);
#undef SELECT
#define SELECT kernel
#include "operands.h"

enum { ELEMENTS = 1 << 20 };

static operands own;

static void* call(void* of_both) {
  char** names = of_both;
  void* library = dlopen(names[0], RTLD_NOW);
  if (!library) return dlerror();
  *(void**)&kernel = dlsym(library, names[1]);
  for (int64_t n = 1; n <= ELEMENTS; n *= 8) {
    if (call_fails(&own, n)) return "a call failed";
  }
  if (!kernel(own.cond, NULL, own.else_, own.out, ELEMENTS)) return "NULL was taken";
  return NULL;
}

int main(int count, char** arguments) {
  pthread_attr_t small;
  pthread_t thread;
  void* wrong;
  if (count != 4 || pthread_attr_init(&small)) return 2;
  own = make_operands(ELEMENTS);
  if (pthread_attr_setstacksize(&small, strtoul(arguments[3], NULL, 10))) return 3;
  if (pthread_create(&thread, &small, call, arguments + 1)) return 4;
  pthread_join(thread, &wrong);
  puts(wrong ? wrong : "");
  printf("%d\n", count_helpers());
  return 0;
}
