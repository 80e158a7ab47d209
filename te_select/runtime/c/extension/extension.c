/* `te_select.where` for NumPy: the common calls, by NumPy's C API; others are left to Python. */
#define TE_SELECT_IMPORTS_NUMPY
#include "extension.h"

#include <string.h>

#include "ffi.h"

static const te_select_where_library* library; /* the first one; set once, by any thread */
/* Functions of Python, set before the first call. */
static PyObject *numpy_fallback, *load_kernels, *numpy_where;
/* A dict: for tensors of a type, a function for common calls, which is never removed. */
static PyObject* by_type;
static int32_t half_flags; /* of stages from float16 */

/* ---- shapes ------------------------------------------------------------------------------------- */

static te_select_view view_of(const PyArrayObject* array) {
  if (!array) return (te_select_view){0}; /* a number */
  return (te_select_view){PyArray_NDIM(array), (const int64_t*)PyArray_DIMS(array),
                          (const int64_t*)PyArray_STRIDES(array)};
}

static int set_out(te_select_where_call* call, const PyArrayObject* out) {
  te_select_view view = view_of(out);
  call->data[TE_SELECT_OUT] = PyArray_BYTES(out);
  return te_select_join_out(call, &view);
}

/* ---- the result --------------------------------------------------------------------------------- */

static PyArrayObject* new_result(const te_select_operands* found, te_select_where_call* call) {
  npy_intp* strides = NULL;
  int in_c_order = 1;
  for (int i = 0; i < TE_SELECT_INPUTS; ++i)
    in_c_order &= !found->in[i].array || PyArray_IS_C_CONTIGUOUS(found->in[i].array);
  if (!in_c_order) {
    te_select_keep_order(call, call->strides);
    strides = (npy_intp*)call->strides[TE_SELECT_INPUTS];
  }
  Py_INCREF(found->type);
  PyArrayObject* made =
      te_select_new_array(found->type, call->ndim, (npy_intp*)call->shape, strides);
  if (!made) return NULL;
  set_out(call, made);
  return made;
}

static const int WARN_ON_WRITE = (int)(1U << 31); /* a flag that NumPy's headers do not have */

static te_select_verdict take_out(PyObject* out, const te_select_operands* found,
                                  te_select_where_call* call) {
  if (!PyArray_Check(out) || te_select_has_own_rule(out)) return TE_SELECT_FALLBACK_OUT;
  PyArrayObject* array = (PyArrayObject*)out;
  if (PyArray_DESCR(array) != found->type && !PyArray_EquivTypes(PyArray_DESCR(array), found->type))
    return TE_SELECT_FALLBACK_OUT;
  int is_free = PyArray_ISWRITEABLE(array) && !PyArray_CHKFLAGS(array, WARN_ON_WRITE);
  if (!is_free || !set_out(call, array)) return TE_SELECT_FALLBACK_OUT;
  const te_select_where_sources* sources = found->is_staged ? &found->sources : NULL;
  return te_select_where_overlaps(call, sources) ? TE_SELECT_FALLBACK_OUT : TE_SELECT_TAKEN;
}

/* ---- the call ----------------------------------------------------------------------------------- */

const te_select_where_library* te_select_library(void) {
  return __atomic_load_n(&library, __ATOMIC_ACQUIRE);
}

static int32_t run_by(const te_select_where_library* first, const te_select_where_call* call,
                      const te_select_where_sources* sources, te_select_where_plan* plan) {
  return sources ? first->staged(call, sources, plan) : first->call(call, plan);
}

static int32_t run(const te_select_where_call* call, const te_select_where_sources* sources,
                   int64_t elements, te_select_where_plan* plan) {
  const te_select_where_library* first = te_select_library();
  if (!first || (sources && first->version != TE_SELECT_WHERE_VERSION))
    return TE_SELECT_WHERE_NO_KERNEL;
  if (plan || elements < TE_SELECT_KEEP_LOCK) return run_by(first, call, sources, plan);
  int32_t outcome;
  Py_BEGIN_ALLOW_THREADS;
  outcome = run_by(first, call, sources, NULL);
  Py_END_ALLOW_THREADS;
  return outcome;
}

static te_select_verdict select_into(const te_select_where_call* call,
                                     const te_select_where_sources* sources, int64_t elements,
                                     te_select_where_plan* plan) {
  int32_t outcome = run(call, sources, elements, plan);
  if (outcome == TE_SELECT_WHERE_NO_KERNEL) {
    PyObject* found = PyObject_CallFunction(load_kernels, "ii", call->width, sources != NULL);
    if (!found) return TE_SELECT_RAISED;
    int is_there = PyObject_IsTrue(found);
    Py_DECREF(found);
    if (is_there > 0) outcome = run(call, sources, elements, plan);
  }
  if (outcome < 0) return TE_SELECT_FALLBACK_NO_KERNEL;
  if (plan) {
    plan->kernel = outcome;
    return TE_SELECT_TAKEN;
  }
  return te_select_count(outcome, elements) ? TE_SELECT_RAISED : TE_SELECT_TAKEN;
}

te_select_verdict te_select_operands_into(te_select_operands* found, PyObject* out,
                                          PyObject** result, te_select_where_plan* plan) {
  te_select_where_call call;
  te_select_view views[TE_SELECT_INPUTS];
  call.width = (int32_t)PyDataType_ELSIZE(found->type);
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
    te_select_operand* in = &found->in[i];
    views[i] = view_of(in->array);
    call.data[i] = in->array ? PyArray_BYTES(in->array) : in->element;
  }
  if (found->bits) {
    static const int64_t one_bit = 1;
    views[TE_SELECT_COND] = (te_select_view){1, &found->bits->count, &one_bit};
    call.data[TE_SELECT_COND] = (char*)(uintptr_t)found->bits->first;
  }
  int64_t elements = te_select_join(&call, views);
  if (elements <= 0) return TE_SELECT_FALLBACK_SHAPE;
  if (out) {
    te_select_verdict taken = take_out(out, found, &call);
    if (taken != TE_SELECT_TAKEN) return taken;
    *result = Py_NewRef(out);
  } else {
    *result = (PyObject*)new_result(found, &call);
    if (!*result) return TE_SELECT_RAISED;
  }
  found->sources.flags = half_flags;
  return select_into(&call, found->is_staged ? &found->sources : NULL, elements, plan);
}

static PyObject* leave_to_numpy(te_select_verdict reason, PyObject* const* args, Py_ssize_t count) {
  te_select_count_left(reason);
  return PyObject_Vectorcall(numpy_where, args, (size_t)count, NULL);
}

/* The call by the function for tensors of a type; None if there is none, or it leaves the call. */
static PyObject* call_by_type(PyObject* const* args, Py_ssize_t count, PyObject* names) {
  Py_ssize_t given = count + (names ? PyTuple_GET_SIZE(names) : 0);
  for (Py_ssize_t i = 0; i < given; ++i) {
    PyObject* of_type = PyDict_GetItemWithError(by_type, (PyObject*)Py_TYPE(args[i]));
    if (of_type) return PyObject_Vectorcall(of_type, args, (size_t)count, names);
    if (PyErr_Occurred()) return NULL;
  }
  Py_RETURN_NONE;
}

/* The call by Python's function, which has one more argument, the reason, in front. */
static PyObject* call_fallback(te_select_verdict reason, PyObject* const* args, Py_ssize_t count,
                               PyObject* names) {
  size_t given = (size_t)count + (names ? (size_t)PyTuple_GET_SIZE(names) : 0);
  PyObject* all[8] = {NULL};
  if (given > 7) {
    return PyErr_Format(PyExc_TypeError, "where() takes 1 or 3 positional arguments and out");
  }
  all[0] = PyUnicode_FromString(te_select_verdicts[reason].reason);
  if (!all[0]) return NULL;
  memcpy(all + 1, args, given * sizeof(*args));
  PyObject* result = PyObject_Vectorcall(numpy_fallback, all, (size_t)count + 1, names);
  Py_DECREF(all[0]);
  return result;
}

/* Makes arrays of the arguments, as numpy.where does: in their order, each once. Numbers of Python
 * stay, because they yield to arrays. Returns -1, with the error of the conversion and nothing to
 * release, if one fails. */
static int as_arrays(PyObject* const* args, PyObject** arrays) {
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
    arrays[i] = te_select_is_number(args[i])
                    ? Py_NewRef(args[i])
                    : PyArray_FromAny(args[i], NULL, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);
    if (arrays[i]) continue;
    while (i-- > 0) Py_DECREF(arrays[i]);
    return -1;
  }
  return 0;
}

/* The call again, with arrays in the place of what NumPy makes arrays of. */
static PyObject* call_with_arrays(PyObject* self, PyObject* const* args, PyObject* names) {
  PyObject* arrays[TE_SELECT_INPUTS + 1];
  if (as_arrays(args, arrays)) return NULL;
  if (names) arrays[TE_SELECT_INPUTS] = args[TE_SELECT_INPUTS];
  PyObject* result = te_select_call_where(self, arrays, TE_SELECT_INPUTS, names);
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) Py_DECREF(arrays[i]);
  return result;
}

/* A call that the kernels have not done. It is apart, so that the others take less time. */
static PyObject* call_others(PyObject* self, te_select_verdict reason, PyObject* const* args,
                             Py_ssize_t count, PyObject* names) {
  PyObject* result;
  if (reason == TE_SELECT_FALLBACK_OPERAND_KIND) {
    result = call_by_type(args, count, names);
    if (result != Py_None) return result;
    Py_DECREF(result);
    int own = 0;
    for (int i = 0; i < TE_SELECT_INPUTS; ++i) own |= te_select_has_own_rule(args[i]);
    if (!own) reason = TE_SELECT_FALLBACK_CONVERSION;
  }
  result = call_fallback(reason, args, count, names);
  if (result != Py_NotImplemented) return result;
  Py_DECREF(result);
  return reason == TE_SELECT_FALLBACK_CONVERSION ? call_with_arrays(self, args, names)
                                                 : leave_to_numpy(reason, args, count);
}

/* Whether numpy.where does the call, which is told from here, so that warnings name the line of the
 * caller. */
static int is_numpys(te_select_verdict found, PyObject* const* args, Py_ssize_t count,
                     Py_ssize_t named) {
  if (found != TE_SELECT_FALLBACK_ARGUMENTS)
    return found >= TE_SELECT_FALLBACK_ELEMENT_TYPE && found <= TE_SELECT_FALLBACK_SHAPE;
  return count == 1 && !named && PyArray_Check(args[0]) && !te_select_has_own_rule(args[0]);
}

PyObject* te_select_call_where(PyObject* self, PyObject* const* args, size_t flagged,
                               PyObject* names) {
  Py_ssize_t count = PyVectorcall_NARGS(flagged);
  Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  PyObject *out = NULL, *result = NULL;
  te_select_verdict found = TE_SELECT_FALLBACK_ARGUMENTS;
  if (te_select_sampler && te_select_is_sampled()) {
    return PyObject_Vectorcall(te_select_sampler, args, (size_t)count, names);
  }
  if (count == TE_SELECT_INPUTS &&
      (!named ||
       (named == 1 && !PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out")))) {
    if (named && args[TE_SELECT_INPUTS] != Py_None) out = args[TE_SELECT_INPUTS];
    te_select_operands taken;
    found = te_select_take(args, NULL, &taken);
    if (found == TE_SELECT_TAKEN) found = te_select_operands_into(&taken, out, &result, NULL);
    te_select_release(&taken);
    if (found == TE_SELECT_TAKEN) return result;
    Py_CLEAR(result);
    if (found == TE_SELECT_RAISED) return NULL;
  }
  if (!out && is_numpys(found, args, count, named)) return leave_to_numpy(found, args, count);
  return call_others(self, found, args, count, names);
}

/* ---- the module --------------------------------------------------------------------------------- */

static PyObject* make(PyObject* Py_UNUSED(self), PyObject* const* args, Py_ssize_t count) {
  if (count != 6 || !PyDict_Check(args[3]) || !PyLong_Check(args[5])) {
    return PyErr_Format(PyExc_TypeError, "expected the functions of call.py, a dict and flags");
  }
  half_flags = (int32_t)PyLong_AsLong(args[5]);
  Py_XSETREF(numpy_fallback, Py_NewRef(args[0]));
  Py_XSETREF(load_kernels, Py_NewRef(args[1]));
  te_select_fetch_missing_kernel_by(args[2]);
  Py_XSETREF(by_type, Py_NewRef(args[3]));
  return te_select_make_callable(te_select_call_where, args[4]);
}

static PyObject* install(PyObject* Py_UNUSED(self), PyObject* address) {
  const te_select_where_library* given = te_select_address(address);
  if (!given) return NULL;
  if (given->version < TE_SELECT_WHERE_OLDEST || given->version > TE_SELECT_WHERE_VERSION) {
    return PyErr_Format(PyExc_ValueError,
                        "the kernels of where() have version %lld; expected %d to %d: build them "
                        "again",
                        (long long)given->version, TE_SELECT_WHERE_OLDEST, TE_SELECT_WHERE_VERSION);
  }
  const char* refusal = given->refusal();
  if (refusal) return PyErr_Format(PyExc_ValueError, "%s", refusal);
  const te_select_where_library* first = NULL;
  if (!__atomic_compare_exchange_n(&library, &first, given, 0, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    first->add(given);
  }
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"cpu_features", te_select_cpu_features, METH_NOARGS,
     "Features of the CPU as /proc/cpuinfo has them."},
    {"make", TE_SELECT_FAST(make), "Make the callable, of functions for what it leaves to Python."},
    {"install", install, METH_O,
     "Take a library of kernels, by its address; the first is given those of all others."},
    {"counts", te_select_counts, METH_NOARGS, "Calls and elements that kernels have served."},
    {"plan", TE_SELECT_FAST(te_select_plan),
     "Why a call of cond, x, y and out is left, its kernel, threads, stores past the cache, "
     "tiles, the kinds that are converted, in blocks of so many elements; OpenMP's team."},
    {"select", TE_SELECT_FAST(te_select_or_leave),
     "Select by cond, x, y and out; NotImplemented if kernels do not."},
    {"in_place", TE_SELECT_FAST(te_select_make_in_place),
     "Make copyto or putmask, of a function for other masks, NumPy's, and whether it is putmask."},
    {"are_kept", te_select_are_kept, METH_VARARGS,
     "Whether kernels convert elements of a type to another as NumPy does."},
    {"chain", TE_SELECT_FAST(te_select_chain),
     "Select by pairs of cond and choice, a default and out, all contiguous; false if not done."},
    {"sample_by", te_select_sample_by, METH_O, "Let a function time one of some 64 calls."},
    {"last", te_select_last, METH_NOARGS, "Last kernel, and its elements since this was asked."},
    {"entry", te_select_make_entry, METH_O,
     "Make the call of a kernel with NumPy arrays, by the address of its function."},
    {"take_tensors", te_select_take_tensors, METH_O,
     "Let the calls of kernels take tensors of tvm-ffi, whose type is given."},
    {"tensor_entry", TE_SELECT_FAST(te_select_make_tensor_entry),
     "Make the call of te_select_where with tensors of a type, by its address."},
    {"keep_memory", te_select_keep_memory, METH_VARARGS,
     "Set the most bytes that are kept for results, and whether to ask for huge pages."},
    {"bytes_kept", te_select_bytes_kept, METH_NOARGS, "The bytes that are kept for results now."},
    {"empty", TE_SELECT_FAST(te_select_empty),
     "Make an array of a shape and a type; large ones take memory that was kept."},
    {NULL, NULL, 0, NULL},
};

/* NumPy, without which there is nothing here, has one interpreter in a process, too. */
static int fill_module(PyObject* made) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError, "te_select's extension is for the main interpreter alone");
    return -1;
  }
  import_array1(-1);
  PyObject* numpy = PyImport_ImportModule("numpy");
  if (!numpy) return -1;
  int failed = te_select_remember_numpys_rules(numpy);
  if (!failed) Py_XSETREF(numpy_where, PyObject_GetAttrString(numpy, "where"));
  Py_DECREF(numpy);
  return failed || !numpy_where ? -1 : te_select_name_verdicts(made);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void*)fill_module},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_extension",
    .m_doc = "Calls by NumPy's C API: te_select.where, and kernels.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__extension(void) { return PyModuleDef_Init(&module); }
