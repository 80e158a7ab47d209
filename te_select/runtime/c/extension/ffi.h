/* Calls by the calling convention of tvm-ffi. Of its headers, only types are used. `kernel.c` makes
 * them with arrays, and `tensors.c` with tensors. */
#pragma once

#include <tvm/ffi/c_api.h>

#include "arguments.h"

/* An address that Python gives; NULL, with an error of Python, if it is none. */
static inline void* te_select_address(PyObject* value) {
  void* found = PyLong_AsVoidPtr(value);
  if (!found && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the address is 0");
  return found;
}

/* Makes a function of Python that has a capsule, which it takes; NULL if that is. */
static inline PyObject* te_select_bind(PyMethodDef* function, PyObject* capsule) {
  PyObject* made = capsule ? PyCFunction_New(function, capsule) : NULL;
  Py_XDECREF(capsule);
  return made;
}

/* An argument that lends a tensor. */
static inline TVMFFIAny te_select_lent(DLTensor* t) {
  return (TVMFFIAny){.type_index = kTVMFFIDLTensorPtr, .v_ptr = t};
}

/* How many elements a tensor has, or some number of at least `most`. */
static inline int64_t te_select_elements(const DLTensor* t, int64_t most) {
  int64_t product = 1;
  for (int32_t axis = 0; axis < t->ndim && product < most; ++axis) product *= t->shape[axis];
  return product;
}

/* Calls a function with all operands, without the interpreter's lock if there are many elements. */
static inline int te_select_call_ffi(TVMFFISafeCallType function, const TVMFFIAny* given,
                                     int64_t elements, TVMFFIAny* result) {
  if (elements < TE_SELECT_KEEP_LOCK) return function(NULL, given, TE_SELECT_OPERANDS, result);
  int failed;
  Py_BEGIN_ALLOW_THREADS;
  failed = function(NULL, given, TE_SELECT_OPERANDS, result);
  Py_END_ALLOW_THREADS;
  return failed;
}

/* Makes a function of (cond, then, else, out) that calls a kernel's function `NAME__try` or
 * `NAME__bits`, of which the address is given. It returns whether the kernel took the arguments:
 * compact arrays, and numbers if a rank is 0; or tensors of tvm-ffi. */
PyObject* te_select_make_entry(PyObject* module, PyObject* address);

/* Sets the type of tvm-ffi's tensors. The extension can be used without that library. */
PyObject* te_select_take_tensors(PyObject* module, PyObject* type);

/* Makes a function of (cond, x, y, out), all tensors of one type, which calls `te_select_where` of a
 * library. The arguments are the address of that function, and the type. What it returns is what
 * `te_select_where` does, or a negative number if the tensors were refused. */
PyObject* te_select_make_tensor_entry(PyObject* module, PyObject* const* args, Py_ssize_t count);
