/* Calls with tensors of a library that has DLPack's exchange API, such as torch. */
#ifndef TE_SELECT_TENSORS_H_
#define TE_SELECT_TENSORS_H_

#include "numpy_api.h"

/* Makes a function of (cond, x, y, out), all tensors of one type, which calls `te_select_where` of a
 * library. The arguments are the address of that function, and the type. What it returns is what
 * `te_select_where` does, or a negative number if the tensors were refused. */
PyObject* te_select_make_tensor_entry(PyObject* module, PyObject* const* args, Py_ssize_t count);

#endif
