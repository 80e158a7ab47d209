/* NumPy's C API, shared by the files of the extension. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL te_select_numpy_api
#ifndef TE_SELECT_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

/* A function with a vector of arguments, for a table of methods. */
#define TE_SELECT_FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL
