/* Calls a kernel in a thread with a small stack: the least of one of Python, or of the system, which
 * is 128 KB on 64-bit Arm. Prints whether the calls were right, and how many threads the pool has. */
#include <pthread.h>
#include <unistd.h>

#include "operands.h"

enum { ELEMENTS = 1 << 20, LEAST = 32 << 10 };

static void* call(void* data) {
  const operands* own = data;
  int refused = SELECT(own->cond, NULL, own->else_, own->out, ELEMENTS);
  return !refused || call_fails(own, 1) || call_fails(own, ELEMENTS) ? data : NULL;
}

int main(void) {
  pthread_attr_t small;
  pthread_t thread;
  operands own = make_operands(ELEMENTS);
  void* wrong = &own;
  long least = sysconf(_SC_THREAD_STACK_MIN);
  pthread_attr_init(&small);
  if (pthread_attr_setstacksize(&small, least > LEAST ? (size_t)least : LEAST)) return 2;
  if (pthread_create(&thread, &small, call, &own)) return 3;
  pthread_join(thread, &wrong);
  printf("%d %d\n", !wrong, count_helpers());
  return 0;
}
