/* Calls one kernel from one to four threads at a time, under TSan.
 *
 * Every thread has operands of its own and compares what it gets. The kernel is a parallel loop,
 * whose tasks count how often they have done each element, and fail when they are told to.
 * Arguments: a seed, and how many calls all threads make together. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tvm/ffi/c_api.h>

enum { MOST_CALLERS = 4, MOST_ELEMENTS = 20000, OPERANDS = 4, NAP = 200 };

int SELECT(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

/* ---- the clock --------------------------------------------------------------------------------- */

static _Atomic int64_t ahead_s;

/* What the C half has in the place of clock_gettime. */
int soak_clock(clockid_t id, struct timespec* now) {
  (void)id;
  timespec_get(now, TIME_UTC);
  now->tv_sec += ahead_s;
  return 0;
}

/* ---- the kernel -------------------------------------------------------------------------------- */

static _Atomic int64_t helped;

/* The operands of a caller. The kernel finds the rest by the address of out, which comes first. */
typedef struct {
  int32_t out[MOST_ELEMENTS];
  unsigned char cond[MOST_ELEMENTS], times[MOST_ELEMENTS];
  int32_t then[MOST_ELEMENTS], else_[MOST_ELEMENTS];
  int fails; /* the next call is to */
  pthread_t caller;
  atomic_int has_help;
} memory;

int32_t soak_kernel(const unsigned char* cond, const int32_t* then, const int32_t* else_,
                    int32_t* out, int64_t n, int64_t flags, int64_t task, int64_t tasks) {
  (void)flags;
  memory* m = (memory*)out;
  for (int64_t i = n * task / tasks; i < n * (task + 1) / tasks; ++i) {
    out[i] = cond[i] ? then[i] : else_[i];
    ++m->times[i];
  }
  if (!pthread_equal(pthread_self(), m->caller)) m->has_help = 1;
  for (volatile int i = 0; i < task * 7919 % 5 * NAP; ++i) {
  }
  return m->fails && task == m->fails % tasks;
}

/* ---- callers ----------------------------------------------------------------------------------- */

static uint64_t seed;
static _Atomic int64_t left, made;

static uint64_t draw(uint64_t* state, uint64_t below) {
  *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
  return (*state * 0x2545F4914F6CDD1DULL >> 16) % below;
}

static void end_with(const char* what, int64_t n, int64_t at) {
  printf("call of %lld elements, seed %llu: %s at %lld\n", (long long)n, (unsigned long long)seed,
         what, (long long)at);
  fflush(stdout);
  _Exit(1);
}

static void drop_error(int64_t n) {
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  if (!error) end_with("it failed and raised nothing", n, 0);
  TVMFFIObjectDecRef(error);
}

static void call_once(memory* m, uint64_t* state) {
  int64_t n = (int64_t)draw(state, draw(state, 8) ? 600 : MOST_ELEMENTS);
  m->fails = draw(state, 16) ? 0 : 1 + (int)draw(state, 64);
  m->caller = pthread_self();
  m->has_help = 0;
  memset(m->times, 0, (size_t)n);
  void* data[] = {m->cond, m->then, m->else_, m->out};
  DLTensor tensors[OPERANDS];
  TVMFFIAny args[OPERANDS], result;
  for (int i = 0; i < OPERANDS; ++i) {
    DLDataType type = i ? (DLDataType){kDLInt, 32, 1} : (DLDataType){kDLBool, 8, 1};
    tensors[i] = (DLTensor){data[i], {kDLCPU, 0}, 1, type, &n, NULL, 0};
    memset(&args[i], 0, sizeof(args[i]));
    args[i].type_index = kTVMFFIDLTensorPtr;
    args[i].v_ptr = &tensors[i];
  }
  int code = SELECT(NULL, args, OPERANDS, &result);
  helped += m->has_help;
  if (code) drop_error(n);
  if ((code != 0) != (n && m->fails)) end_with("a failure of a task was lost or made up", n, code);
  for (int64_t i = 0; i < n; ++i) {
    if (m->times[i] != 1) end_with("an element was not done once", n, i);
    if (m->out[i] != (m->cond[i] ? m->then[i] : m->else_[i])) end_with("a wrong element", n, i);
  }
  ++made;
  if (!draw(state, 8)) ++ahead_s;
}

static void* make_calls(void* number) {
  uint64_t state = (seed * MOST_CALLERS + (uint64_t)(uintptr_t)number + 1) * 0x9E3779B97F4A7C15ULL;
  memory* m = malloc(sizeof(memory));
  for (int i = 0; i < MOST_ELEMENTS; ++i) {
    m->cond[i] = draw(&state, 2);
    m->then[i] = (int32_t)draw(&state, 1 << 30);
    m->else_[i] = -m->then[i] - 1;
  }
  while (left-- > 0) call_once(m, &state);
  free(m);
  return NULL;
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  seed = strtoull(arguments[1], NULL, 10);
  left = strtoll(arguments[2], NULL, 10);
  uintptr_t several = 1 + seed % MOST_CALLERS;
  pthread_t callers[MOST_CALLERS];
  for (uintptr_t i = 0; i < several; ++i) {
    if (pthread_create(&callers[i], NULL, make_calls, (void*)i)) return 2;
  }
  for (uintptr_t i = 0; i < several; ++i) pthread_join(callers[i], NULL);
  printf("%lld %lld\n", (long long)made, (long long)helped);
  return 0;
}
