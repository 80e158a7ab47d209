/* What the kernels of te_select.where have served in this process. */
#include "counts.h"

#include "where.h"

enum { KERNELS = TE_SELECT_WIDTHS * (TE_SELECT_RUNS + TE_SELECT_ROWS) };
static const int64_t WORTH_LOADING = 1 << 22; /* elements that a kernel of rows would have served */

static PyObject* fetch_missing_kernel;
static long long calls, all_elements, large_calls;
static int64_t elements_of[KERNELS];

void te_select_fetch_missing_kernel_by(PyObject* function) {
  Py_XSETREF(fetch_missing_kernel, Py_NewRef(function));
}

int te_select_count(int64_t outcome, int64_t elements) {
  ++calls;
  all_elements += elements;
  large_calls += elements > TE_SELECT_LARGE;
  int64_t number = outcome & (TE_SELECT_WHERE_MISSING_KERNEL - 1);
  if (number >= KERNELS) return 0;
  int64_t before = elements_of[number];
  elements_of[number] += elements;
  int is_missing = outcome != number;
  /* It is asked for once, when its elements have become so many. */
  if (!is_missing || before >= WORTH_LOADING || elements_of[number] < WORTH_LOADING) return 0;
  PyObject* done = PyObject_CallFunction(fetch_missing_kernel, "L", (long long)number);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

PyObject* te_select_elements_of_kernels(void) {
  return PyBytes_FromStringAndSize((const char*)elements_of, sizeof(elements_of));
}

void te_select_served(long long counts[3]) {
  counts[0] = calls;
  counts[1] = all_elements;
  counts[2] = large_calls;
}
