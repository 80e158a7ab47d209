/* An OpenMP runtime with one thread beside the caller's. A call on it begins a team if there is none. */
#include <pthread.h>
#include <stdatomic.h>

int regions, last_number, limit = 2, is_in_region;
_Thread_local long used;
static _Thread_local long number;
static _Atomic(void (*)(void*)) job;
static void* job_data;
static _Atomic int has_team;
long *late_clock, late = 200001; /* by how much the team is late by its time, if it has one */

static void* work(void* data) {
  number = 1;
  for (;;) {
    void (*run)(void*) = job;
    if (!run) continue;
    run(job_data);
    job = 0;
  }
  return data;
}

/* What a thread of the program does that uses the runtime, with a region or without. */
void use_runtime(int with_region) {
  pthread_t thread;
  used = 1;
  if (with_region && !has_team) has_team = !pthread_create(&thread, NULL, work, NULL);
}

void GOMP_parallel(void (*run)(void*), void* data, unsigned threads, unsigned flags) {
  ++regions;
  last_number = (int)(threads + flags);
  use_runtime(1);
  job_data = data;
  job = run;
  run(data);
  while (job) {
  }
  if (late_clock) *late_clock += late;
}
int omp_in_parallel(void) { return is_in_region; }
int omp_get_max_threads(void) { return limit; }
int omp_get_thread_num(void) { return (int)number; }
