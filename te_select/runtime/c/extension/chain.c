/* Chains of Selects on contiguous arrays. */
#include "extension.h"

enum { MOST_STEPS = 64 };

/* An operand of a chain. Returns 1 if it is contiguous and has as many elements as out, 0 if it is a
 * side of one element, and -1 otherwise. */
static int take_operand(PyObject* value, PyArrayObject* out, int is_cond, char** data) {
  if (!PyArray_CheckExact(value)) return -1;
  PyArrayObject* array = (PyArrayObject*)value;
  int fits = is_cond ? PyArray_TYPE(array) == NPY_BOOL
                     : PyArray_EquivTypes(PyArray_DESCR(array), PyArray_DESCR(out));
  if (!fits) return -1;
  *data = PyArray_BYTES(array);
  if (PyArray_IS_C_CONTIGUOUS(array) && PyArray_SIZE(array) == PyArray_SIZE(out)) return 1;
  return PyArray_SIZE(array) == 1 && !is_cond ? 0 : -1;
}

/* Takes the pair of a step, and its else, which is the default or out. */
static int take_step(PyObject* pair, PyObject* held, PyArrayObject* out, te_select_where_step* to) {
  if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) return 0;
  PyObject* const inputs[] = {PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1), held};
  to->moving = 0;
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
    int moves = take_operand(inputs[i], out, i == TE_SELECT_COND, &to->data[i]);
    if (moves < 0) return 0;
    to->moving = 2 * to->moving + moves;
  }
  return 1;
}

PyObject* te_select_chain(PyObject* Py_UNUSED(module), PyObject* const* args, Py_ssize_t count) {
  if (count != 3 || !PyList_Check(args[0]))
    return PyErr_Format(PyExc_TypeError, "expected a list of pairs, a default and out");
  if (!PyArray_CheckExact(args[2])) Py_RETURN_FALSE;
  PyArrayObject* out = (PyArrayObject*)args[2];
  Py_ssize_t steps = PyList_GET_SIZE(args[0]);
  const te_select_where_library* library = te_select_library();
  if (!library || !steps || steps > MOST_STEPS || !PyArray_IS_C_CONTIGUOUS(out)) Py_RETURN_FALSE;
  te_select_where_step each[MOST_STEPS];
  for (Py_ssize_t k = 0; k < steps; ++k) {
    PyObject* held = k ? args[2] : args[1];
    if (!take_step(PyList_GET_ITEM(args[0], k), held, out, &each[k])) Py_RETURN_FALSE;
  }
  const te_select_where_chain chain = {PyArray_SIZE(out), (int32_t)PyArray_ITEMSIZE(out),
                                       (int32_t)steps, each, PyArray_BYTES(out)};
  int32_t outcome;
  Py_BEGIN_ALLOW_THREADS;
  outcome = library->chain(&chain);
  Py_END_ALLOW_THREADS;
  if (outcome < 0) Py_RETURN_FALSE;
  for (Py_ssize_t k = 0; k < steps; ++k) {
    int64_t number = TE_SELECT_RUNS * te_select_width_index(chain.width) + each[k].moving;
    if (te_select_count(number, chain.elements)) return NULL;
  }
  Py_RETURN_TRUE;
}
