/* What the arguments of a call are, and which element type they have in common. */
#pragma once

#include "numpy_api.h"
#include "where_abi.h"

/* Elements from which on the interpreter's lock is given away, which costs 50 ns. */
enum { TE_SELECT_KEEP_LOCK = 1 << 13 };

/* An argument: an array, or a Python number whose type yields to that of an array. */
typedef struct {
  PyArrayObject* array; /* owned, or NULL */
  PyObject* number;     /* borrowed, or NULL */
  char element[16];     /* the number as an element of the result */
} te_select_operand;

/* Booleans that are stored as bits: `count` of them, from a bit of `data` on. */
typedef struct {
  const char* data;
  int64_t first, count;
} te_select_bits;

typedef struct {
  te_select_operand in[TE_SELECT_INPUTS];
  PyArray_Descr* type;        /* owned; of the result */
  const te_select_bits* bits; /* of cond, in the place of an array or number; or NULL */
  te_select_where_sources sources;
  int32_t is_staged; /* whether one of the sources is converted */
} te_select_operands;

/* What becomes of a call, above all why it is left to numpy.where: an index of `te_select_verdicts`, or
 * a failure. */
typedef enum {
  TE_SELECT_TAKEN,
  TE_SELECT_RAISED = -1, /* an exception is set */
  TE_SELECT_FALLBACK_ARGUMENTS = 1,
  TE_SELECT_FALLBACK_CONVERSION, /* an operand is not an array, and NumPy makes one of it */
  TE_SELECT_FALLBACK_OPERAND_KIND,
  TE_SELECT_FALLBACK_ELEMENT_TYPE, /* from here to SHAPE: numpy.where does it, called from C */
  TE_SELECT_FALLBACK_PROMOTION,
  TE_SELECT_FALLBACK_NUMBER,
  TE_SELECT_FALLBACK_SHAPE,
  TE_SELECT_FALLBACK_OUT,
  TE_SELECT_FALLBACK_NO_KERNEL,
  TE_SELECT_VERDICTS
} te_select_verdict;

/* The verdicts in Python: the name of a constant of the module, and the reason for users. */
typedef struct { const char *name, *reason; } te_select_verdict_in_python;

extern const te_select_verdict_in_python te_select_verdicts[TE_SELECT_VERDICTS];

/* Finds out what the arguments are; cond is `bits`, unless that is NULL. Whatever it returns,
 * `release` must follow. */
te_select_verdict te_select_take(PyObject* const* args, const te_select_bits* bits,
                                 te_select_operands* found);
void te_select_release(te_select_operands* found);

/* Whether a value is a number of Python, whose type yields to that of an array. */
static inline int te_select_is_number(PyObject* value) {
  return PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyComplex_CheckExact(value);
}

/* Remembers NumPy's own `__array_function__` and result_type; -1, with an error of Python, if that
 * fails. */
int te_select_remember_numpys_rules(PyObject* numpy);

/* Whether the type of an object has an `__array_function__` of its own, which NumPy then calls. */
int te_select_has_own_rule(PyObject* value);

/* Whether a number leaves the type of an array as it is. */
int te_select_keeps_type(PyObject* number, int type);

/* The kind of a type of numbers, as where_abi.h numbers them; else TE_SELECT_AS_IS. */
int32_t te_select_kind_of(const PyArray_Descr* type);

/* Makes an element of a number; false if it is of another kind, or out of range. */
int te_select_exact_number(PyObject* number, PyArray_Descr* type, char* element);
