/* What the kernels of te_select.where have served in this process. */
#include "counts.h"

#include "where.h"

enum { ROW_KERNELS = TE_SELECT_WIDTHS * TE_SELECT_ROWS };
static const int64_t WORTH_LOADING = 1 << 22; /* elements that a kernel of rows would have served */

static PyObject* fetch_missing_kernel;
static long long calls, all_elements, large_calls;
static int64_t wanted_elements[ROW_KERNELS];

void te_select_fetch_missing_kernel_by(PyObject* function) {
  Py_XSETREF(fetch_missing_kernel, Py_NewRef(function));
}

static int note_missing_kernel(int64_t number, int64_t elements) {
  if (number < 0 || number >= ROW_KERNELS || wanted_elements[number] < 0) return 0;
  wanted_elements[number] += elements;
  if (wanted_elements[number] < WORTH_LOADING) return 0;
  wanted_elements[number] = -1; /* asked for once */
  PyObject* done = PyObject_CallFunction(fetch_missing_kernel, "L", (long long)number);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

int te_select_count(int64_t outcome, int64_t elements) {
  ++calls;
  all_elements += elements;
  large_calls += elements > TE_SELECT_LARGE;
  return outcome < TE_SELECT_WHERE_MISSING_KERNEL
             ? 0
             : note_missing_kernel(outcome - TE_SELECT_WHERE_MISSING_KERNEL, elements);
}

void te_select_served(long long counts[3]) {
  counts[0] = calls;
  counts[1] = all_elements;
  counts[2] = large_calls;
}
