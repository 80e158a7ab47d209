/* Memory of large results, which is kept for the next ones when an array dies. */
#ifndef TE_SELECT_KEPT_MEMORY_H_
#define TE_SELECT_KEPT_MEMORY_H_

#include "numpy_api.h"

/* Makes an array as PyArray_NewFromDescr does, which takes the reference to the type. A large one has
 * memory that is kept, unless the user has set a handler of memory (NEP 49). `strides` may be NULL. */
PyArrayObject* te_select_new_array(PyArray_Descr* type, int ndim, const npy_intp* shape,
                                   const npy_intp* strides);

/* Functions of Python: the most bytes that are kept, 0 for none, and whether large blocks ask for huge
 * pages; the bytes that are kept now; an array of a shape and a type. */
PyObject* te_select_keep_memory(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* te_select_bytes_kept(PyObject* module, PyObject* unused);
PyObject* te_select_empty(PyObject* module, PyObject* const* args, Py_ssize_t count);

#endif
