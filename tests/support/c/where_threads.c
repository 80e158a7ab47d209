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

/* A random one of: all contiguous; else transposed; cond per row and one else; then upside down. */
static void make_call(te_select_where_call* call, char* const* memory, int kind) {
  memset(call, 0, sizeof(*call));
  call->ndim = 2;
  call->width = WIDTH;
  call->shape[0] = ROWS;
  call->shape[1] = COLUMNS;
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    call->data[i] = memory[i];
    call->strides[i][0] = COLUMNS * te_select_item(i, WIDTH);
    call->strides[i][1] = te_select_item(i, WIDTH);
  }
  if (kind == 1)
    call->strides[TE_SELECT_ELSE][0] = WIDTH, call->strides[TE_SELECT_ELSE][1] = ROWS * WIDTH;
  if (kind == 2) call->strides[TE_SELECT_COND][0] = 1, call->strides[TE_SELECT_COND][1] = 0;
  if (kind == 2) memset(call->strides[TE_SELECT_ELSE], 0, sizeof(call->strides[TE_SELECT_ELSE]));
  if (kind == 3) call->data[TE_SELECT_THEN] += (ROWS - 1) * call->strides[TE_SELECT_THEN][0];
  if (kind == 3) call->strides[TE_SELECT_THEN][0] *= -1;
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
    te_select_where_call call;
    make_call(&call, memory, rand_r(&seed) % 4);
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
  (void)unused;
  static te_select_where_kernels rows;
  take_rows(&rows);
  const te_select_where_library other = {.version = TE_SELECT_WHERE_VERSION, .kernels = &rows};
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
