/* Calls of compiled kernels with NumPy arrays or tensors of tvm-ffi. */
#ifndef TE_SELECT_KERNEL_H_
#define TE_SELECT_KERNEL_H_

#include "numpy_api.h"

/* Makes a function of (cond, then, else, out) that calls a kernel's function `NAME__try`, of which
 * the address is given. It returns whether the kernel took the arguments: compact arrays, and
 * numbers if a rank is 0; or tensors of tvm-ffi. */
PyObject* te_select_make_entry(PyObject* module, PyObject* address);

/* Sets the type of tvm-ffi's tensors. The extension can be used without that library. */
PyObject* te_select_take_tensors(PyObject* module, PyObject* type);

#endif
