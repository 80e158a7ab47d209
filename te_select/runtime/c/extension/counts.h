/* What the kernels of te_select.where have served in this process. */
#ifndef TE_SELECT_COUNTS_H_
#define TE_SELECT_COUNTS_H_

#include "numpy_api.h"

enum { TE_SELECT_LARGE = 4096 }; /* elements; calls of more are counted as large */

/* Adds to a number that several threads may change, where no lock of Python's guards it. */
static inline long long te_select_add(long long* to, long long n) {
#ifdef Py_GIL_DISABLED
  return __atomic_add_fetch(to, n, __ATOMIC_RELAXED);
#else
  return *to += n;
#endif
}

/* What one of some 64 calls goes to, which calls again; NULL if nothing is captured. */
extern PyObject* te_select_sampler;

/* Whether this call is one of these; the next one never is. */
int te_select_is_sampled(void);

/* A method of the module: sets the sampler. */
PyObject* te_select_sample_by(PyObject* self, PyObject* function);

/* Sets the function of Python that fetches a kernel of rows, by its number. */
void te_select_fetch_missing_kernel_by(PyObject* function);

/* Counts a call that kernels have done, with one of the outcomes in where.h. If they lacked a kernel
 * of rows, it is fetched when it would have served many elements. Returns -1, with an error of
 * Python, if that fails. */
int te_select_count(int64_t outcome, int64_t elements);

/* A tuple: the calls, the elements, and the calls of many elements so far; a dict of the calls that
 * were left, which it takes; and the elements that each kernel is for, by the numbers of the kernels:
 * int64s as bytes. */
PyObject* te_select_served(PyObject* left);

#endif
