// The causal mask of a GPT-2 attention layer, from C:
//
//   te-select compile --cond 1,1,1024,1024 --then 1,12,1024,1024 --else "" -o build/attention.so
//   cc examples/c/main.c -Ibuild -Lbuild -l:attention.so -Wl,-rpath,"$PWD/build" -o build/attention
//   build/attention
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "attention.h"

enum { HEADS = 12, N = 1024 };

int main(void) {
  uint8_t* cond = malloc((size_t)N * N);
  float* scores = malloc(sizeof(float) * HEADS * N * N);
  float* out = calloc((size_t)HEADS * N * N, sizeof(float));
  if (!cond || !scores || !out) return 1;
  for (int i = 0; i < N * N; ++i) cond[i] = i % N <= i / N;
  for (int i = 0; i < HEADS * N * N; ++i) scores[i] = (float)i;
  float masked = -INFINITY;

  double best = INFINITY;
  for (int round = 0; round < 20; ++round) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (te_select_float32_numpy_c1x1x1024x1024_t1x12x1024x1024_e(cond, scores, &masked, out)) {
      return fprintf(stderr, "%s\n", te_select_error()), 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ms = (end.tv_sec - begin.tv_sec) * 1e3 + (end.tv_nsec - begin.tv_nsec) * 1e-6;
    if (ms < best) best = ms;
  }
  for (int i = 0; i < HEADS * N * N; ++i) {
    if (out[i] != (cond[i % (N * N)] ? scores[i] : masked)) return fprintf(stderr, "wrong\n"), 1;
  }
  return printf("%d elements selected from C, in %.2f ms\n", HEADS * N * N, best) < 0;
}
