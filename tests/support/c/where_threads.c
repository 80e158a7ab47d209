/* Calls where() from many threads at once, which is the first call of the process, while kernels of
 * rows are added. Every thread compares what it gets. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LATE_ROWS 1
#include "where_in_c.c"

enum { THREADS = 64, CALLS = 60, ROWS = 60, COLUMNS = 70, WIDTH = sizeof(float) };

int __tvm_ffi_te_select_where_library(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

/* ---- calls --------------------------------------------------------------------------------------- */

static pthread_barrier_t together;

/* The first thread that asks makes the library find out where it runs. */
static const te_select_where_library* first_use(void) {
  TVMFFIAny found;
  pthread_barrier_wait(&together);
  __tvm_ffi_te_select_where_library(NULL, NULL, 0, &found);
  return (const te_select_where_library*)(uintptr_t)found.v_int64;
}

static void fail(const char* what) {
  puts(what);
  exit(1);
}

/* Of cond, then, else and out: all contiguous; else transposed; cond per row, and one else. */
enum { ROW = COLUMNS * WIDTH };
static const int64_t strides[][TE_SELECT_OPERANDS][2] = {
    {{COLUMNS, 1}, {ROW, WIDTH}, {ROW, WIDTH}, {ROW, WIDTH}},
    {{COLUMNS, 1}, {ROW, WIDTH}, {WIDTH, ROWS * WIDTH}, {ROW, WIDTH}},
    {{1, 0}, {ROW, WIDTH}, {0, 0}, {ROW, WIDTH}}};

static te_select_where_call make_call(char* const* memory, int kind) {
  te_select_where_call call = {.ndim = 2, .width = WIDTH, .shape = {ROWS, COLUMNS}};
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    call.data[i] = memory[i];
    memcpy(call.strides[i], strides[kind][i], sizeof(strides[kind][i]));
  }
  return call;
}

static const char* element(const te_select_where_call* call, int operand, int64_t i, int64_t j) {
  return call->data[operand] + i * call->strides[operand][0] + j * call->strides[operand][1];
}

static void* make_calls(void* number) {
  unsigned seed = (unsigned)(uintptr_t)number;
  enum { BYTES = ROWS * COLUMNS * WIDTH };
  char* memory[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    memory[i] = malloc(BYTES);
    for (int at = 0; at < BYTES; ++at) memory[i][at] = (char)(rand_r(&seed) % (i ? 100 : 2));
  }
  const te_select_where_library* library = first_use();
  for (int k = 0; k < CALLS; ++k) {
    te_select_where_call call = make_call(memory, rand_r(&seed) % 3);
    if (library->call(&call, NULL) < 0) fail("a call was not done");
    for (int64_t i = 0; i < ROWS; ++i) {
      for (int64_t j = 0; j < COLUMNS; ++j) {
        int side = *element(&call, TE_SELECT_COND, i, j) ? TE_SELECT_THEN : TE_SELECT_ELSE;
        if (memcmp(element(&call, TE_SELECT_OUT, i, j), element(&call, side, i, j), WIDTH))
          fail("wrong");
      }
    }
  }
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) free(memory[i]);
  return NULL;
}

static void* add_rows(void* unused) {
  static te_select_where_kernels rows;
  take_rows(&rows);
  static const te_select_where_stages stages;
  const te_select_where_library other = {
      .version = TE_SELECT_WHERE_VERSION, .kernels = &rows, .stages = &stages};
  first_use()->add(&other);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS + 1];
  pthread_barrier_init(&together, NULL, THREADS + 1);
  for (uintptr_t i = 0; i <= THREADS; ++i) {
    if (pthread_create(&threads[i], NULL, i ? make_calls : add_rows, (void*)i)) return 2;
  }
  for (int i = 0; i <= THREADS; ++i) pthread_join(threads[i], NULL);
  puts("done");
  return 0;
}
