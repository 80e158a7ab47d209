/* Selects operands that are taken, by the kernels that are loaded. */
#include "extension.h"

/* Smaller conditions are NumPy's, which takes TODO. */
enum { COMPARED_FROM = 4096 };

static const te_select_where_library* library; /* the first one; set once, by any thread */
static PyObject* load_kernels;                 /* a function of Python, set before the first call */
static int32_t half_flags;                     /* of stages from float16 */

void te_select_load_kernels_by(PyObject* function, int32_t flags) {
  Py_XSETREF(load_kernels, Py_NewRef(function));
  half_flags = flags;
}

/* ---- shapes ------------------------------------------------------------------------------------- */

static int set_out(te_select_where_call* call, const PyArrayObject* out) {
  te_select_view view = te_select_view_of(out);
  call->data[TE_SELECT_OUT] = PyArray_BYTES(out);
  return te_select_join_out(call, &view);
}

/* ---- the result --------------------------------------------------------------------------------- */

static PyArrayObject* new_result(const te_select_operands* found, te_select_where_call* call) {
  npy_intp* strides = NULL;
  int in_c_order = !found->filled || !found->view.strides;
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

static const te_select_where_sources* sources_of(const te_select_operands* found) {
  return found->is_staged || found->filled ? &found->sources : NULL;
}

static te_select_verdict take_out(PyObject* out, const te_select_operands* found,
                                  te_select_where_call* call) {
  if (!PyArray_Check(out) || te_select_has_own_rule(out)) return TE_SELECT_FALLBACK_OUT;
  PyArrayObject* array = (PyArrayObject*)out;
  if (PyArray_DESCR(array) != found->type && !PyArray_EquivTypes(PyArray_DESCR(array), found->type))
    return TE_SELECT_FALLBACK_OUT;
  if (!PyArray_ISWRITEABLE(array) || !set_out(call, array)) return TE_SELECT_FALLBACK_OUT;
  return te_select_where_overlaps(call, sources_of(found)) ? TE_SELECT_FALLBACK_OUT
                                                           : TE_SELECT_TAKEN;
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
  if (!first || first->version < te_select_where_needs(sources)) return TE_SELECT_WHERE_NO_KERNEL;
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

static te_select_verdict into(te_select_operands* found, PyObject* out, PyObject** result,
                              te_select_where_plan* plan) {
  te_select_where_call call;
  te_select_view views[TE_SELECT_INPUTS];
  call.width = (int32_t)PyDataType_ELSIZE(found->type);
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
    te_select_operand* in = &found->in[i];
    views[i] = te_select_view_of(in->array);
    call.data[i] = in->array ? PyArray_BYTES(in->array) : in->element;
  }
  if (found->bits) {
    static const int64_t one_bit = 1;
    views[TE_SELECT_COND] = (te_select_view){1, &found->bits->count, &one_bit};
    call.data[TE_SELECT_COND] = (char*)(uintptr_t)found->bits->first;
  }
  if (found->filled) views[TE_SELECT_COND] = found->view;
  int64_t elements = te_select_join(&call, views);
  if (elements <= 0) return TE_SELECT_FALLBACK_SHAPE;
  if (found->filled && !te_select_fill_condition(found->condition, &call, found->filled))
    return TE_SELECT_FALLBACK_NO_KERNEL;
  if (out) {
    te_select_verdict taken = take_out(out, found, &call);
    if (taken != TE_SELECT_TAKEN) return taken;
    *result = Py_NewRef(out);
  } else {
    *result = (PyObject*)new_result(found, &call);
    if (!*result) return TE_SELECT_RAISED;
  }
  found->sources.flags = half_flags;
  return select_into(&call, sources_of(found), elements, plan);
}

/* Selects by a condition that kernels compute; `no kernel` if they do not. */
static te_select_verdict by_condition(te_select_operands* found, PyObject* out, PyObject** result,
                                      te_select_where_plan* plan) {
  const PyArrayObject* like = NULL;
  te_select_where_condition filled;
  int64_t shape[TE_SELECT_WHERE_RANK], elements = 1;
  int32_t ndim = te_select_condition_shape(found->condition, shape);
  for (int32_t axis = 0; axis < ndim; ++axis) elements *= shape[axis];
  if (ndim < 0 || elements < COMPARED_FROM) return TE_SELECT_FALLBACK_NO_KERNEL;
  if (!out && !te_select_condition_order(found->condition, &like))
    return TE_SELECT_FALLBACK_NO_KERNEL;
  found->view = (te_select_view){ndim, shape, like ? te_select_view_of(like).strides : NULL};
  found->sources.condition = found->filled = &filled;
  te_select_verdict taken = into(found, out, result, plan);
  found->sources.condition = found->filled = NULL;
  return taken;
}

te_select_verdict te_select_operands_into(te_select_operands* found, PyObject* out,
                                          PyObject** result, te_select_where_plan* plan) {
  if (!found->condition) return into(found, out, result, plan);
  te_select_verdict taken = by_condition(found, out, result, plan);
  if (taken != TE_SELECT_FALLBACK_NO_KERNEL) return taken;
  Py_CLEAR(*result);
  PyObject* cond = te_select_plain((PyObject*)found->condition);
  found->condition = NULL;
  if (!cond) return TE_SELECT_RAISED;
  found->in[TE_SELECT_COND].array = (PyArrayObject*)PyArray_EnsureArray(cond);
  return found->in[TE_SELECT_COND].array ? into(found, out, result, plan) : TE_SELECT_RAISED;
}

PyObject* te_select_install(PyObject* Py_UNUSED(self), PyObject* address) {
  const te_select_where_library* given = PyLong_AsVoidPtr(address);
  if (PyErr_Occurred()) return NULL;
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
