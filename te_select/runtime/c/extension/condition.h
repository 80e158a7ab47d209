/* Arrays whose comparisons are deferred, and conditions, which are such comparisons. */
#pragma once

#include "numpy_api.h"
#include "where.h"

/* A relation beside those of where.h: a boolean itself. */
enum { TE_SELECT_IS_TRUE = TE_SELECT_RELATIONS };

/* A comparison, and what it compares: the second is NULL if it asks of one. */
typedef struct {
  int32_t relation;
  PyArrayObject* operands[2];
} te_select_condition_leaf;

/* Its steps are those of te_select_where_condition. */
typedef struct {
  PyObject_HEAD int32_t leaf_count, step_count;
  int8_t steps[TE_SELECT_STEPS];
  te_select_condition_leaf leaves[TE_SELECT_LEAVES];
} te_select_condition;

/* The array that a Lazy holds, borrowed; NULL if the value is none. */
PyArrayObject* te_select_lazy_array(PyObject* value);

/* The value, if it is a Condition; else NULL. */
te_select_condition* te_select_as_condition(PyObject* value);

static inline int te_select_is_deferred(PyObject* value) {
  return te_select_lazy_array(value) || te_select_as_condition(value);
}

/* NumPy's result for a Condition, the array of a Lazy, and any other value itself. */
PyObject* te_select_plain(PyObject* value);

/* Sets the shape that what is compared broadcasts to; returns its axes, or -1 if there is none, as arrays
 * may have other shapes by now. */
int32_t te_select_condition_shape(const te_select_condition* condition,
                                  int64_t shape[TE_SELECT_WHERE_RANK]);

/* Sets what kernels compare in a call of that shape. Returns 0 if they cannot: a type has changed. */
int te_select_fill_condition(const te_select_condition* condition, const te_select_where_call* call,
                             te_select_where_condition* filled);

/* The array whose strides those of NumPy's result go by, if all that is compared lies alike in memory;
 * NULL if everything is in C order. Returns 0 if neither holds. */
int te_select_condition_order(const te_select_condition* condition, const PyArrayObject** like);

/* What is deferred, in the order in which conditions.py lists NumPy's ufuncs. The first six are numbered as
 * Python's comparisons, such as Py_LT, of which the first three are numbered as relations. */
enum {
  TE_SELECT_ISNAN = Py_GE + 1,
  TE_SELECT_ISFINITE,
  TE_SELECT_LOGICAL_AND,
  TE_SELECT_LOGICAL_OR,
  TE_SELECT_LOGICAL_NOT,
  TE_SELECT_BITWISE_AND,
  TE_SELECT_BITWISE_OR,
  TE_SELECT_INVERT,
  TE_SELECT_UFUNCS
};

/* A Condition for one of them, whose second operand may be NULL; NotImplemented if NumPy is to compute it
 * now. */
PyObject* te_select_deferred(int number, PyObject* one, PyObject* other);

/* A condition without comparisons, which are to be put in; NULL if there is no memory. */
te_select_condition* te_select_new_condition(void);

/* The kind of what is compared; TE_SELECT_AS_IS if kernels do not compare it. The second operand may be
 * NULL. */
int32_t te_select_kind_compared(int32_t relation, PyArrayObject* const operands[2]);

/* Broadcasts a shape with two operands more; returns its axes, or -1. */
int32_t te_select_join_compared(int32_t ndim, int64_t shape[TE_SELECT_WHERE_RANK],
                                te_select_view one, te_select_view other);
te_select_view te_select_view_of(const PyArrayObject* array);

/* The same, or what the operator of Python makes now of arrays. */
PyObject* te_select_operator(int number, PyObject* one, PyObject* other);

/* Takes the ufuncs, a tuple, and the type of conditions. */
void te_select_defer_by(PyObject* ufuncs, PyObject* type);

/* The method of both types by which NumPy calls a ufunc (NEP 13). */
PyObject* te_select_array_ufunc(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                PyObject* names);
#define TE_SELECT_ARRAY_UFUNC                                             \
  {"__array_ufunc__", (PyCFunction)(void (*)(void))te_select_array_ufunc, \
   METH_FASTCALL | METH_KEYWORDS, "Defer a ufunc, or compute it now."}

/* Functions of Python: takes the types of Lazy and Condition, the ufuncs, and what computes others; makes
 * a Lazy of an array, and leaves other values. */
PyObject* te_select_take_types(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* te_select_lazy(PyObject* module, PyObject* value);

/* Refuses to make an object by its type. */
PyObject* te_select_no_new(PyTypeObject* of, PyObject* args, PyObject* names);

/* The types of which Python's are made; NULL if that fails. */
PyTypeObject* te_select_condition_type(void);
PyTypeObject* te_select_lazy_type(void);
