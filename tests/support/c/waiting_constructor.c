/* A plug-in whose constructor waits for a thread that calls a kernel. Meanwhile the loader's lock is
 * held. */
#include <pthread.h>

#include "operands.h"

enum { ELEMENTS = 1 << 20 };

static void* call(void* unused) {
  operands own = make_operands(ELEMENTS);
  printf("%d", call_fails(&own, ELEMENTS));
  printf(" %d\n", SELECT(own.cond, NULL, own.else_, own.out, ELEMENTS));
  return NULL;
}

__attribute__((constructor)) static void wait_for_a_call(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, call, NULL);
  pthread_join(thread, NULL);
}
