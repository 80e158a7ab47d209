/* What the kernels of te_select.where have served in this process. */
#include "extension.h"

enum { KERNELS = TE_SELECT_WIDTHS * (TE_SELECT_RUNS + TE_SELECT_ROWS) };
enum { LARGE = 4096 };                        /* elements; calls of more are counted as large */
static const int64_t WORTH_LOADING = 1 << 22; /* elements that a kernel of rows would have served */

PyObject* te_select_sampler;

/* Adds to a number that several threads may change, where no lock of Python's guards it. */
static inline long long add(long long* to, long long n) {
#ifdef Py_GIL_DISABLED
  return __atomic_add_fetch(to, n, __ATOMIC_RELAXED);
#else
  return *to += n;
#endif
}

int te_select_is_sampled(void) {
  /* The intervals are random, as programs have periods, and grow: a program may call but a few times. */
  static __thread uint32_t state = 1;
  static __thread uint32_t unsampled = 1;
  static __thread uint32_t most = 1;
  if (--unsampled) return 0;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  unsampled = 2 + state % most;
  if (most < 125) most += 2; /* one call of some 64 */
  return 1;
}

PyObject* te_select_sample_by(PyObject* Py_UNUSED(self), PyObject* function) {
  Py_XSETREF(te_select_sampler, Py_NewRef(function));
  Py_RETURN_NONE;
}

static __thread int64_t last_kernel, last_elements; /* since a sample asked last */

PyObject* te_select_last(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(unused)) {
  PyObject* result = Py_BuildValue("LL", (long long)last_kernel, (long long)last_elements);
  last_elements = 0;
  return result;
}

static PyObject* fetch_missing_kernel;
static long long calls, all_elements, large_calls;
static long long elements_of[KERNELS];

void te_select_fetch_missing_kernel_by(PyObject* function) {
  Py_XSETREF(fetch_missing_kernel, Py_NewRef(function));
}

int te_select_count(int64_t outcome, int64_t elements) {
  add(&calls, 1);
  add(&all_elements, elements);
  if (elements > LARGE) add(&large_calls, 1);
  int64_t number = outcome & (TE_SELECT_WHERE_MISSING_KERNEL - 1);
  if (number >= KERNELS) return 0;
  if (te_select_sampler) {
    last_kernel = number;
    last_elements += elements;
  }
  long long now = add(&elements_of[number], elements);
  int is_missing = outcome != number;
  /* It is asked for once, by the call with which its elements become so many. */
  if (!is_missing || now < WORTH_LOADING || now - elements >= WORTH_LOADING) return 0;
  PyObject* done = PyObject_CallFunction(fetch_missing_kernel, "L", (long long)number);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

static long long left[TE_SELECT_VERDICTS];

void te_select_count_left(te_select_verdict reason) { add(&left[reason], 1); }

int te_select_name_verdicts(PyObject* module) {
  for (int i = 0; i < TE_SELECT_VERDICTS; ++i) {
    const te_select_verdict_in_python* verdict = &te_select_verdicts[i];
    if (PyModule_AddStringConstant(module, verdict->name, verdict->reason)) return -1;
  }
  return 0;
}

PyObject* te_select_counts(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(unused)) {
  PyObject* reasons = PyDict_New();
  for (int i = TE_SELECT_TAKEN + 1; reasons && i < TE_SELECT_VERDICTS; ++i) {
    PyObject* count = PyLong_FromLongLong(__atomic_load_n(&left[i], __ATOMIC_RELAXED));
    if (!count || PyDict_SetItemString(reasons, te_select_verdicts[i].reason, count))
      Py_CLEAR(reasons);
    Py_XDECREF(count);
  }
  if (!reasons) return NULL;
  int64_t elements[KERNELS];
  for (int i = 0; i < KERNELS; ++i)
    elements[i] = __atomic_load_n(&elements_of[i], __ATOMIC_RELAXED);
  return Py_BuildValue("LLLNy#", __atomic_load_n(&calls, __ATOMIC_RELAXED),
                       __atomic_load_n(&all_elements, __ATOMIC_RELAXED),
                       __atomic_load_n(&large_calls, __ATOMIC_RELAXED), reasons,
                       (const char*)elements, (Py_ssize_t)sizeof(elements));
}
