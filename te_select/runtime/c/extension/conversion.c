/* Objects that are no arrays, of which NumPy makes arrays. */
#include "conversion.h"

static PyObject *name_of_rule, *numpys_rule;

int te_select_remember_numpys_rule(void) {
  name_of_rule = PyUnicode_InternFromString("__array_function__");
  if (name_of_rule) numpys_rule = PyObject_GetAttr((PyObject*)&PyArray_Type, name_of_rule);
  return numpys_rule ? 0 : -1;
}

int te_select_has_own_rule(PyObject* value) {
  PyObject* rule = PyObject_GetAttr((PyObject*)Py_TYPE(value), name_of_rule);
  if (!rule) PyErr_Clear(); /* as NumPy does, whatever the error */
  Py_XDECREF(rule);
  return rule && rule != numpys_rule;
}

int te_select_as_arrays(PyObject* const* args, PyObject** arrays) {
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
