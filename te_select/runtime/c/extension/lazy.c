/* Lazy: an array whose comparisons are deferred. All else is NumPy's, now. */
#include "condition.h"

typedef struct { PyObject_HEAD PyArrayObject* array; } lazy;

static PyTypeObject base_type;
static PyTypeObject* type; /* of Python, set before there are objects of it */
static PyObject *ufuncs, *compute_now;

PyArrayObject* te_select_lazy_array(PyObject* value) {
  return PyObject_TypeCheck(value, &base_type) ? ((lazy*)value)->array : NULL;
}

/* ---- operators ---------------------------------------------------------------------------------- */

static PyObject* operate(int number, PyObject* one, PyObject* other) {
  if (number <= Py_GE) return PyObject_RichCompare(one, other, number);
  if (number == TE_SELECT_INVERT) return PyNumber_Invert(one);
  return number == TE_SELECT_BITWISE_AND ? PyNumber_And(one, other) : PyNumber_Or(one, other);
}

PyObject* te_select_operator(int number, PyObject* one, PyObject* other) {
  PyObject* result = te_select_deferred(number, one, other);
  if (result != Py_NotImplemented) return result;
  Py_DECREF(result);
  PyObject* first = te_select_plain(one);
  PyObject* second = first && other ? te_select_plain(other) : NULL;
  result = first && (second || !other) ? operate(number, first, second) : NULL;
  Py_XDECREF(first);
  Py_XDECREF(second);
  return result;
}

static PyObject* compare(PyObject* self, PyObject* other, int how) {
  return te_select_operator(how, self, other);
}

static PyObject* defer_ufunc(PyObject* const* args, Py_ssize_t count) {
  int number = 0;
  while (number < TE_SELECT_UFUNCS && PyTuple_GET_ITEM(ufuncs, number) != args[0]) ++number;
  int is_call = number < TE_SELECT_UFUNCS && (count == 3 || count == 4) &&
                !PyUnicode_CompareWithASCIIString(args[1], "__call__");
  if (!is_call) Py_RETURN_NOTIMPLEMENTED;
  return te_select_deferred(number, args[2], count == 4 ? args[3] : NULL);
}

PyObject* te_select_array_ufunc(PyObject* Py_UNUSED(self), PyObject* const* args, Py_ssize_t count,
                                PyObject* names) {
  if (count > 2 && !names && PyUnicode_Check(args[1])) {
    PyObject* result = defer_ufunc(args, count);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
  }
  return PyObject_Vectorcall(compute_now, args, (size_t)count, names);
}

/* ---- the type ----------------------------------------------------------------------------------- */

/* The collector knows of no array, so that it could not break a circle through this object. */
static void drop(PyObject* self) {
  Py_DECREF(((lazy*)self)->array);
  Py_TYPE(self)->tp_free(self);
}

PyObject* te_select_no_new(PyTypeObject* of, PyObject* Py_UNUSED(args),
                           PyObject* Py_UNUSED(names)) {
  return PyErr_Format(PyExc_TypeError, "%s is made by te_select.lazy(array)", of->tp_name);
}

static PyObject* plain(PyObject* self, PyObject* Py_UNUSED(unused)) {
  return te_select_plain(self);
}

static PyMethodDef methods[] = {
    {"_plain", plain, METH_NOARGS, "The array."},
    TE_SELECT_ARRAY_UFUNC,
    {NULL, NULL, 0, NULL},
};

static PyTypeObject base_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "te_select.numpy_where.BaseOfLazy",
    .tp_basicsize = sizeof(lazy),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = te_select_no_new,
    .tp_dealloc = drop,
    .tp_richcompare = compare,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_methods = methods,
};

PyTypeObject* te_select_lazy_type(void) { return PyType_Ready(&base_type) ? NULL : &base_type; }

PyObject* te_select_take_types(PyObject* Py_UNUSED(module), PyObject* const* args,
                               Py_ssize_t count) {
  if (count != 4 || !PyType_Check(args[0]) || !PyType_Check(args[1]) || !PyTuple_Check(args[2]) ||
      PyTuple_GET_SIZE(args[2]) != TE_SELECT_UFUNCS)
    return PyErr_Format(PyExc_TypeError, "expected the types and functions of conditions.py");
  Py_XSETREF(type, (PyTypeObject*)Py_NewRef(args[0]));
  Py_XSETREF(ufuncs, Py_NewRef(args[2]));
  Py_XSETREF(compute_now, Py_NewRef(args[3]));
  te_select_defer_by(args[2], args[1]);
  Py_RETURN_NONE;
}

PyObject* te_select_lazy(PyObject* Py_UNUSED(module), PyObject* value) {
  if (!PyArray_CheckExact(value)) return Py_NewRef(value);
  lazy* made = (lazy*)type->tp_alloc(type, 0);
  if (made) made->array = (PyArrayObject*)Py_NewRef(value);
  return (PyObject*)made;
}
