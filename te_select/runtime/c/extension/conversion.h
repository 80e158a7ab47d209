/* Objects that are no arrays, of which NumPy makes arrays. */
#ifndef TE_SELECT_CONVERSION_H_
#define TE_SELECT_CONVERSION_H_

#include "operands.h"

/* Remembers NumPy's own `__array_function__`; -1, with an error of Python, if that fails. */
int te_select_remember_numpys_rule(void);

/* Whether the type of an object has an `__array_function__` of its own, which NumPy then calls. */
int te_select_has_own_rule(PyObject* value);

/* Makes arrays of the arguments, as numpy.where does: in their order, each once. Numbers of Python
 * stay, because they yield to arrays. Returns -1, with the error of the conversion and nothing to
 * release, if one fails. */
int te_select_as_arrays(PyObject* const* args, PyObject** arrays);

#endif
