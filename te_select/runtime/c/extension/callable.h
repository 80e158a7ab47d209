/* The type of `te_select.where`, which looks like a function. */
#ifndef TE_SELECT_CALLABLE_H_
#define TE_SELECT_CALLABLE_H_

#include "numpy_api.h"

/* Makes an object that is called by `call`; torch.compile traces `traced` in its place. */
PyObject* te_select_make_callable(vectorcallfunc call, PyObject* traced);

#endif
