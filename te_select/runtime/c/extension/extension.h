/* The extension, a module for Python: what its files do for each other, beside calls by tvm-ffi. */
#pragma once

#include "arguments.h"
#include "numpy_api.h"
#include "where_abi.h"

/* ---- callable.c: the type of `te_select.where` and others, which look like functions */

/* Makes an object that is called by `call`; torch.compile traces `traced` in the place of all of them,
 * unless it is NULL. */
PyObject* te_select_make_callable(vectorcallfunc call, PyObject* traced);

/* ---- counts.c: what the kernels of te_select.where have served in this process */

/* What one of some 64 calls goes to, which calls again; NULL if nothing is captured. */
extern PyObject* te_select_sampler;

/* Whether this call is one of these; the next one never is. */
int te_select_is_sampled(void);

/* A method of the module: sets the sampler. */
PyObject* te_select_sample_by(PyObject* self, PyObject* function);

/* A method of the module: the number of the kernel that this thread's last call used, and the elements
 * since it was asked last, if there is a sampler. */
PyObject* te_select_last(PyObject* self, PyObject* unused);

/* Sets the function of Python that fetches a kernel of rows, by its number. */
void te_select_fetch_missing_kernel_by(PyObject* function);

/* Counts a call that kernels have done, with one of the results in where_call.h. If they lacked a kernel
 * of rows, it is fetched when it would have served many elements. Returns -1, with an error of
 * Python, if that fails. */
int te_select_count(int64_t outcome, int64_t elements);

/* Counts a call that is left to numpy.where without a function of Python. */
void te_select_count_left(te_select_verdict reason);

/* A method of the module: the calls, the elements, and the calls of many elements so far; a dict of the
 * calls that were left; and the elements that each kernel is for, by the numbers of the kernels: int64s
 * as bytes. */
PyObject* te_select_counts(PyObject* self, PyObject* unused);

/* Makes the verdicts constants of the module; 0, or -1 for an error of Python. */
int te_select_name_verdicts(PyObject* module);

/* ---- chain.c: chains of Selects on contiguous arrays */

/* The library of kernels; NULL before the first one is loaded. */
const te_select_where_library* te_select_library(void);

/* A function of Python: makes a chain of pairs of cond and choice, a default and out, which overlaps
 * nothing but a default that it is; false if it is not done. */
PyObject* te_select_chain(PyObject* module, PyObject* const* args, Py_ssize_t count);

/* ---- kept_memory.c: memory of large results, which is kept for the next ones when an array dies */

/* Makes an array as PyArray_NewFromDescr does, which takes the reference to the type. A large one has
 * memory that is kept, unless the user has set a handler of memory (NEP 49). `strides` may be NULL. */
PyArrayObject* te_select_new_array(PyArray_Descr* type, int ndim, const npy_intp* shape,
                                   const npy_intp* strides);

/* Functions of Python: the most bytes that are kept, 0 for none, and whether large blocks ask for huge
 * pages; the bytes that are kept now; an array of a shape and a type. */
PyObject* te_select_keep_memory(PyObject* module, PyObject* args);
PyObject* te_select_bytes_kept(PyObject* module, PyObject* unused);
PyObject* te_select_empty(PyObject* module, PyObject* const* args, Py_ssize_t count);

/* ---- layout.c: the order of the axes of a fresh result */

/* Sets the strides of out as numpy.where would: compact, in the order that the inputs have in
 * common ("K"). `inputs` are the strides that they came with. */
void te_select_keep_order(te_select_where_call* call, int64_t inputs[3][TE_SELECT_WHERE_RANK]);

/* ---- in_place.c: `te_select.copyto` and `te_select.putmask` */

/* A method of the module: makes one of them, of a function of Python, NumPy's, and whether it is
 * putmask. */
PyObject* te_select_make_in_place(PyObject* module, PyObject* const* args, Py_ssize_t count);

/* A method of the module: whether kernels convert elements of a type to another as NumPy does. */
PyObject* te_select_are_kept(PyObject* module, PyObject* args);

/* ---- extension.c and for_python.c: calls of operands that are taken */

/* `te_select.where` itself. */
PyObject* te_select_call_where(PyObject* self, PyObject* const* args, size_t flagged,
                               PyObject* names);

/* Selects into out or a new result; or only plans that, unless `plan` is NULL. */
te_select_verdict te_select_operands_into(te_select_operands* found, PyObject* out,
                                          PyObject** result, te_select_where_plan* plan);

/* Functions of Python: of cond, x, y and out, what a call would do, as a tuple; and the call itself,
 * NotImplemented if kernels do not do it. In the place of cond a buffer of bits may stand, with the
 * first bit and their number. */
PyObject* te_select_plan(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* te_select_or_leave(PyObject* module, PyObject* const* args, Py_ssize_t count);

/* A function of Python: the names of the CPU's features, as /proc/cpuinfo has them. */
PyObject* te_select_cpu_features(PyObject* module, PyObject* unused);
