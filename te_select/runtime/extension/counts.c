/* What the kernels of te_select.where have served in this process. */
#include "counts.h"

#include "where.h"

enum { WISHES = TE_SELECT_WIDTHS * TE_SELECT_ROWS };
enum { LARGE = 4096 };                 /* elements; calls of more are counted as large */
static const int64_t WISHED = 1 << 22; /* elements that a kernel of rows would have served */

static PyObject* fetch_rows;
static long long calls, all_elements, large_calls;
static int64_t wishes[WISHES];

void te_select_fetch_rows_by(PyObject* function) { Py_XSETREF(fetch_rows, Py_NewRef(function)); }

static int note_wish(int64_t wish, int64_t elements) {
  if (wish < 0 || wish >= WISHES || wishes[wish] < 0) return 0;
  wishes[wish] += elements;
  if (wishes[wish] < WISHED) return 0;
  wishes[wish] = -1; /* asked for once */
  PyObject* done = PyObject_CallFunction(fetch_rows, "L", (long long)wish);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

int te_select_count(int64_t outcome, int64_t elements) {
  ++calls;
  all_elements += elements;
  large_calls += elements > LARGE;
  return outcome < TE_SELECT_WHERE_WISH ? 0 : note_wish(outcome - TE_SELECT_WHERE_WISH, elements);
}

void te_select_served(long long counts[3]) {
  counts[0] = calls;
  counts[1] = all_elements;
  counts[2] = large_calls;
}
