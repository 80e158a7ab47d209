/* What the arguments of a call are, and which element type they have in common. */
#ifndef TE_SELECT_OPERANDS_H_
#define TE_SELECT_OPERANDS_H_

#include "numpy_api.h"

enum { IN_COND, IN_THEN, IN_ELSE, INPUTS };
enum { KEEP_LOCK = 1 << 13 }; /* elements: giving the interpreter's lock away costs 50 ns */

/* An argument: an array, or a Python number whose type yields to that of an array. */
typedef struct {
  PyArrayObject* array;    /* owned, or NULL; as the caller has it, for the layout of the result */
  PyArrayObject* elements; /* owned, or NULL: the array with elements of the result's type */
  PyObject* number;        /* borrowed, or NULL */
  char element[16];        /* the number as an element of the result */
} operand;

typedef struct {
  operand in[INPUTS];
  PyArray_Descr* type; /* owned; of the result */
} operands;

/* Why a call is left to numpy.where; an index of `reasons`, or a failure. */
typedef enum {
  TAKEN,
  RAISED = -1, /* an exception is set */
  FALLBACK_ARGUMENTS = 1,
  FALLBACK_CONVERSION, /* an operand is no array, and NumPy makes one of it */
  FALLBACK_OPERAND_KIND,
  FALLBACK_ELEMENT_TYPE,
  FALLBACK_PROMOTION,
  FALLBACK_NUMBER,
  FALLBACK_SHAPE,
  FALLBACK_OUT,
  FALLBACK_NO_KERNEL,
  REASONS
} verdict;

extern const char* const te_select_reasons[REASONS];

/* Finds out what the arguments are. Whatever it returns, `release` must follow. */
verdict te_select_take(PyObject* const* args, operands* found);
void te_select_release(operands* found);

/* Whether a value is a number of Python, whose type yields to that of an array. */
static inline int te_select_is_number(PyObject* value) {
  return PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyComplex_CheckExact(value);
}

/* Makes an element of a number; false if it is of another kind, or out of range. */
int te_select_exact_number(PyObject* number, PyArray_Descr* type, char* element);

#endif
