/* A program that links our library beside an object of TVM's. Prints whether the neighbour's pointer
 * was left alone, and how often the neighbour's launcher ran during its own loop and during ours. */
#include "operands.h"

extern int (*__TVMBackendParallelLaunch)(int (*)(int, void*, void*), void*, int);
int loop_of_neighbour(void);

static int launched;

static int launch(int (*each)(int, void*, void*), void* data, int tasks) {
  (void)tasks;
  ++launched;
  return each(0, NULL, data);
}

int main(void) {
  enum { ELEMENTS = 1 << 20 };
  int alone = __TVMBackendParallelLaunch == NULL;
  __TVMBackendParallelLaunch = launch;
  int failed = loop_of_neighbour();
  int own = launched;
  operands ours = make_operands(ELEMENTS);
  failed |= call_fails(&ours, ELEMENTS);
  printf("%d %d %d\n", alone, own, launched - own);
  return failed | (__TVMBackendParallelLaunch != launch);
}
