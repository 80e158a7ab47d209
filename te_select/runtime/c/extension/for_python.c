/* Functions for Python: what a call of `te_select.where` would do, calls with bits of Arrow, and what the
 * CPU has. */
#include <string.h>

#include "arguments.h"
#include "cpu_features.h"
#include "extension.h"

/* Arguments of functions for Python: cond, or a buffer of bits with the first one and their number;
 * then x, y, and out or None. */
enum { WITH_COND = TE_SELECT_OPERANDS, WITH_BITS = WITH_COND + 2 };

/* Selects, or only plans it unless `plan` is NULL. */
static te_select_verdict select_for_python(PyObject* const* args, Py_ssize_t count,
                                           te_select_operands* taken, PyObject** result,
                                           te_select_where_plan* plan) {
  Py_buffer buffer = {0};
  te_select_bits bits = {0};
  memset(taken, 0, sizeof(*taken));
  if (count != WITH_COND && count != WITH_BITS) {
    PyErr_SetString(PyExc_TypeError,
                    "expected cond, or a buffer of bits, its first bit and their "
                    "number; then x, y, and out or None");
    return TE_SELECT_RAISED;
  }
  if (count == WITH_BITS) {
    bits.first = PyLong_AsLongLong(args[1]);
    bits.count = PyLong_AsLongLong(args[2]);
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &buffer, PyBUF_SIMPLE))
      return TE_SELECT_RAISED;
    bits.data = buffer.buf;
  }
  te_select_verdict found = TE_SELECT_FALLBACK_SHAPE;
  if (bits.first >= 0 && bits.count >= 0 && bits.count <= 8 * (int64_t)buffer.len - bits.first) {
    PyObject* const* given = args + count - WITH_COND;
    PyObject* out = given[TE_SELECT_OUT] == Py_None ? NULL : given[TE_SELECT_OUT];
    found = te_select_take(given, count == WITH_BITS ? &bits : NULL, taken);
    if (found == TE_SELECT_TAKEN) found = te_select_operands_into(taken, out, result, plan);
  }
  te_select_release(taken);
  if (count == WITH_BITS) PyBuffer_Release(&buffer);
  return found;
}

PyObject* te_select_plan(PyObject* Py_UNUSED(self), PyObject* const* args, Py_ssize_t count) {
  PyObject* result = NULL;
  te_select_where_plan made = {0};
  te_select_operands taken;
  te_select_verdict found = select_for_python(args, count, &taken, &result, &made);
  Py_XDECREF(result);
  if (found == TE_SELECT_RAISED) return NULL;
  const int32_t* kinds = taken.sources.kinds;
  return Py_BuildValue("siiii(iii)ii", te_select_verdicts[found].reason, made.kernel, made.threads,
                       made.past_cache, made.by_tiles, kinds[TE_SELECT_COND], kinds[TE_SELECT_THEN],
                       kinds[TE_SELECT_ELSE], made.block, made.by_team);
}

PyObject* te_select_or_leave(PyObject* Py_UNUSED(self), PyObject* const* args, Py_ssize_t count) {
  PyObject* result = NULL;
  te_select_operands taken;
  te_select_verdict found = select_for_python(args, count, &taken, &result, NULL);
  if (found == TE_SELECT_TAKEN) return result;
  Py_XDECREF(result);
  if (found == TE_SELECT_RAISED) return NULL;
  Py_RETURN_NOTIMPLEMENTED;
}

PyObject* te_select_cpu_features(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(unused)) {
  char text[TE_SELECT_CPU_FEATURES_BYTES];
  te_select_list_cpu_features(text);
  return PyUnicode_FromString(text);
}
