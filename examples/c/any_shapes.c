// A mask of three rows over a batch whose size only the call knows, on the threads of OpenMP:
//
//   te-select where build -o build/where.so
//   cc -fopenmp examples/c/any_shapes.c -Ibuild build/where.so -Wl,-rpath,"$PWD/build" -o build/any
//   build/any
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "where.h"

enum { ROWS = 3, N = 1 << 18 };

static void parallel_for(void* pool, void (*piece)(void* data, size_t i), size_t count,
                         void* data) {
  (void)pool;  // OpenMP has one
#pragma omp parallel for
  for (size_t i = 0; i < count; ++i) piece(data, i);
}

int main(void) {
  int64_t batch = 4;
  unsigned char mask[ROWS] = {1, 0, 1};
  float* then = calloc((size_t)batch * ROWS * N, sizeof(float));
  float* out = malloc(sizeof(float) * batch * ROWS * N);
  float other = -1;
  if (!then || !out) return 1;
  te_select_where_call call = {.ndim = 3,
                               .width = sizeof(float),
                               .shape = {batch, ROWS, N},
                               .data = {(char*)mask, (char*)then, (char*)&other, (char*)out}};
  int fits = te_select_broadcast(&call, TE_SELECT_COND, 2, (int64_t[]){ROWS, 1}, NULL) &&
             te_select_broadcast(&call, TE_SELECT_THEN, 3, call.shape, NULL) &&
             te_select_broadcast(&call, TE_SELECT_ELSE, 0, NULL, NULL) &&
             te_select_broadcast(&call, TE_SELECT_OUT, 3, call.shape, NULL);
  if (!fits || te_select_where_call_on(&call, parallel_for, NULL, omp_get_max_threads()) < 0) {
    return 1;
  }
  printf("%g %g %g\n", out[0], out[N], out[2 * N]);
  return 0;
}
