/* What the kernels of te_select.where have served in this process. */
#include "counts.h"

#include "where.h"

enum { ROW_KERNELS = TE_SELECT_WIDTHS * TE_SELECT_ROWS };
static const int64_t WORTH_LOADING = 1 << 22; /* elements that a kernel of rows would have served */
static const int64_t NEVER = INT64_MIN / 2;   /* more elements than are ever added */

static PyObject* fetch_missing_kernel;
static long long calls, all_elements, large_calls;
static int64_t wanted_elements[ROW_KERNELS];

void te_select_fetch_missing_kernel_by(PyObject* function) {
  Py_XSETREF(fetch_missing_kernel, Py_NewRef(function));
}

static int note_missing_kernel(int64_t number, int64_t elements) {
  if (number < 0 || number >= ROW_KERNELS) return 0;
  int64_t* wanted = &wanted_elements[number];
  if (__atomic_add_fetch(wanted, elements, __ATOMIC_RELAXED) < WORTH_LOADING) return 0;
  if (__atomic_exchange_n(wanted, NEVER, __ATOMIC_RELAXED) < 0) return 0; /* asked for once */
  PyObject* done = PyObject_CallFunction(fetch_missing_kernel, "L", (long long)number);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

int te_select_count(int64_t outcome, int64_t elements) {
  te_select_add(&calls, 1);
  te_select_add(&all_elements, elements);
  if (elements > TE_SELECT_LARGE) te_select_add(&large_calls, 1);
  return outcome < TE_SELECT_WHERE_MISSING_KERNEL
             ? 0
             : note_missing_kernel(outcome - TE_SELECT_WHERE_MISSING_KERNEL, elements);
}

void te_select_served(long long counts[3]) {
  counts[0] = __atomic_load_n(&calls, __ATOMIC_RELAXED);
  counts[1] = __atomic_load_n(&all_elements, __ATOMIC_RELAXED);
  counts[2] = __atomic_load_n(&large_calls, __ATOMIC_RELAXED);
}
