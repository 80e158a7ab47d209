/* Conditions: comparisons that where() computes on the way, or NumPy when another asks. */
#include "condition.h"

#include <string.h>

#include "arguments.h"

static PyObject* ufuncs;   /* a tuple; set before there are objects of these types */
static PyTypeObject* type; /* of conditions */
static PyTypeObject base_type;

te_select_condition* te_select_as_condition(PyObject* value) {
  return PyObject_TypeCheck(value, &base_type) ? (te_select_condition*)value : NULL;
}

/* ---- shapes ------------------------------------------------------------------------------------- */

te_select_view te_select_view_of(const PyArrayObject* array) {
  if (!array) return (te_select_view){0};
  return (te_select_view){PyArray_NDIM(array), (const int64_t*)PyArray_DIMS(array),
                          (const int64_t*)PyArray_STRIDES(array)};
}

/* Broadcasts a shape with two more; returns its axes, or -1. */
int32_t te_select_join_compared(int32_t ndim, int64_t shape[TE_SELECT_WHERE_RANK],
                                te_select_view one, te_select_view other) {
  te_select_where_call call;
  const te_select_view all[TE_SELECT_INPUTS] = {{ndim, shape, NULL}, one, other};
  call.width = 1;
  if (te_select_join(&call, all) < 0) return -1;
  memcpy(shape, call.shape, sizeof(*shape) * (size_t)call.ndim);
  return call.ndim;
}

int32_t te_select_condition_shape(const te_select_condition* condition,
                                  int64_t shape[TE_SELECT_WHERE_RANK]) {
  int32_t ndim = 0;
  for (int32_t i = 0; i < condition->leaf_count && ndim >= 0; ++i) {
    PyArrayObject* const* operands = condition->leaves[i].operands;
    ndim = te_select_join_compared(ndim, shape, te_select_view_of(operands[0]),
                                   te_select_view_of(operands[1]));
  }
  return ndim;
}

int te_select_condition_order(const te_select_condition* condition, const PyArrayObject** like) {
  int in_c_order = 1, alike = 1;
  *like = NULL;
  for (int32_t i = 0; i < condition->leaf_count; ++i) {
    for (int k = 0; k < 2; ++k) {
      const PyArrayObject* each = condition->leaves[i].operands[k];
      if (!each || !PyArray_NDIM(each)) continue;
      in_c_order &= PyArray_IS_C_CONTIGUOUS(each);
      if (!*like) *like = each;
      alike &=
          PyArray_SAMESHAPE(*like, each) &&
          PyArray_CompareLists(PyArray_STRIDES(*like), PyArray_STRIDES(each), PyArray_NDIM(each));
    }
  }
  for (int axis = 0; *like && axis < PyArray_NDIM(*like); ++axis)
    alike &= PyArray_STRIDE(*like, axis) != 0;
  if (in_c_order) *like = NULL;
  return in_c_order || alike;
}

/* ---- what kernels compare ----------------------------------------------------------------------- */

/* The kind of what a leaf compares; TE_SELECT_AS_IS if kernels do not, as types may have changed. */
int32_t te_select_kind_compared(int32_t relation, PyArrayObject* const operands[2]) {
  int32_t kind = te_select_kind_of(PyArray_DESCR(operands[0]));
  if (operands[1] && te_select_kind_of(PyArray_DESCR(operands[1])) != kind) return TE_SELECT_AS_IS;
  int is_order = relation == TE_SELECT_LESS || relation == TE_SELECT_LESS_EQUAL;
  if (kind >= TE_SELECT_KIND_COMPLEX64 && is_order) return TE_SELECT_AS_IS;
  if (kind < TE_SELECT_KIND_FLOAT16 && relation == TE_SELECT_IS_FINITE) return TE_SELECT_AS_IS;
  if (kind != TE_SELECT_KIND_BOOL && relation == TE_SELECT_IS_TRUE) return TE_SELECT_AS_IS;
  return kind;
}

static int fill_operand(const PyArrayObject* array, const te_select_where_call* call,
                        te_select_where_compared* to) {
  te_select_view view = te_select_view_of(array);
  to->data = PyArray_BYTES(array);
  return te_select_spread(call, &view, to->strides);
}

/* A boolean is true where False is less. */
static int fill_is_true(const PyArrayObject* array, const te_select_where_call* call,
                        te_select_where_leaf* to) {
  static const char no = 0;
  to->relation = TE_SELECT_LESS;
  to->operands[0].data = &no;
  memset(to->operands[0].strides, 0, sizeof(to->operands[0].strides));
  return fill_operand(array, call, &to->operands[1]);
}

int te_select_fill_condition(const te_select_condition* condition, const te_select_where_call* call,
                             te_select_where_condition* filled) {
  filled->leaf_count = condition->leaf_count;
  filled->step_count = condition->step_count;
  memcpy(filled->steps, condition->steps, sizeof(filled->steps));
  for (int32_t i = 0; i < condition->leaf_count; ++i) {
    const te_select_condition_leaf* from = &condition->leaves[i];
    te_select_where_leaf* to = &filled->leaves[i];
    to->relation = from->relation;
    to->kind = te_select_kind_compared(from->relation, from->operands);
    if (to->kind == TE_SELECT_AS_IS) return 0;
    if (from->relation == TE_SELECT_IS_TRUE) {
      if (!fill_is_true(from->operands[0], call, to)) return 0;
      continue;
    }
    for (int k = 0; k < te_select_operands_of(to->relation); ++k)
      if (!fill_operand(from->operands[k], call, &to->operands[k])) return 0;
  }
  return 1;
}

/* ---- what NumPy compares ------------------------------------------------------------------------ */

static PyObject* call_ufunc(int number, PyObject* one, PyObject* other) {
  return PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(ufuncs, number), one, other, NULL);
}

static PyObject* leaf_now(const te_select_condition_leaf* of) {
  if (of->relation == TE_SELECT_IS_TRUE) return Py_NewRef((PyObject*)of->operands[0]);
  int number = of->relation == TE_SELECT_IS_FINITE ? TE_SELECT_ISFINITE : of->relation;
  return call_ufunc(number, (PyObject*)of->operands[0], (PyObject*)of->operands[1]);
}

static PyObject* condition_now(const te_select_condition* condition) {
  PyObject* stack[TE_SELECT_LEAVES] = {NULL};
  int32_t depth = 0;
  for (int32_t i = 0; i < condition->step_count; ++i) {
    int8_t step = condition->steps[i];
    PyObject *made, *other = NULL;
    if (step >= 0) {
      made = leaf_now(&condition->leaves[step]);
    } else {
      int is_not = step == TE_SELECT_NOT;
      int number = is_not                  ? TE_SELECT_LOGICAL_NOT
                   : step == TE_SELECT_AND ? TE_SELECT_LOGICAL_AND
                                           : TE_SELECT_LOGICAL_OR;
      if (!is_not) other = stack[--depth];
      PyObject* one = stack[--depth];
      made = call_ufunc(number, one, other);
      Py_DECREF(one);
      Py_XDECREF(other);
    }
    if (!made) {
      while (depth) Py_DECREF(stack[--depth]);
      return NULL;
    }
    stack[depth++] = made;
  }
  return stack[0];
}

PyObject* te_select_plain(PyObject* value) {
  PyArrayObject* array = te_select_lazy_array(value);
  if (array) return Py_NewRef((PyObject*)array);
  te_select_condition* condition = te_select_as_condition(value);
  return condition ? condition_now(condition) : Py_NewRef(value);
}

te_select_condition* te_select_new_condition(void) {
  return (te_select_condition*)type->tp_alloc(type, 0);
}

/* ---- the type ----------------------------------------------------------------------------------- */

/* The collector knows of no array, so that it could not break a circle through this object. */
static void drop(PyObject* self) {
  te_select_condition* of = (te_select_condition*)self;
  for (int32_t i = 0; i < of->leaf_count; ++i) {
    Py_DECREF(of->leaves[i].operands[0]);
    Py_XDECREF(of->leaves[i].operands[1]);
  }
  Py_TYPE(self)->tp_free(self);
}

static PyObject* shape_of(PyObject* self, void* Py_UNUSED(unused)) {
  int64_t shape[TE_SELECT_WHERE_RANK];
  int32_t ndim = te_select_condition_shape((te_select_condition*)self, shape);
  if (ndim >= 0) return PyArray_IntTupleFromIntp(ndim, (npy_intp*)shape);
  PyErr_SetString(PyExc_ValueError, "arrays that are compared have another shape now");
  return NULL;
}

static PyObject* plain(PyObject* self, PyObject* Py_UNUSED(unused)) {
  return te_select_plain(self);
}

static PyObject* and_of(PyObject* one, PyObject* other) {
  return te_select_operator(TE_SELECT_BITWISE_AND, one, other);
}
static PyObject* or_of(PyObject* one, PyObject* other) {
  return te_select_operator(TE_SELECT_BITWISE_OR, one, other);
}
static PyObject* invert(PyObject* self) { return te_select_operator(TE_SELECT_INVERT, self, NULL); }

static PyNumberMethods operators = {
    .nb_and = and_of,
    .nb_or = or_of,
    .nb_invert = invert,
    .nb_inplace_and = and_of,
    .nb_inplace_or = or_of,
};

static PyMethodDef methods[] = {
    {"_plain", plain, METH_NOARGS, "NumPy's result."},
    TE_SELECT_ARRAY_UFUNC,
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef members[] = {
    {"shape", shape_of, NULL, "The shape of NumPy's result.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject base_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "te_select.numpy_where.BaseOfCondition",
    .tp_basicsize = sizeof(te_select_condition),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = te_select_no_new,
    .tp_dealloc = drop,
    .tp_as_number = &operators,
    .tp_methods = methods,
    .tp_getset = members,
};

PyTypeObject* te_select_condition_type(void) {
  return PyType_Ready(&base_type) ? NULL : &base_type;
}

void te_select_defer_by(PyObject* of_numpy, PyObject* of_conditions) {
  Py_XSETREF(ufuncs, Py_NewRef(of_numpy));
  Py_XSETREF(type, (PyTypeObject*)Py_NewRef(of_conditions));
}
