/* Which comparisons are deferred, and the conditions that are made of them. */
#include <string.h>

#include "arguments.h"
#include "condition.h"

static PyObject* not_deferred(void) {
  return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
}

/* A condition of one comparison, which takes over the references to what it compares. */
static PyObject* of_leaf(int32_t relation, PyArrayObject* one, PyArrayObject* other,
                         int is_negated) {
  PyArrayObject* const operands[2] = {one, other};
  int64_t shape[TE_SELECT_WHERE_RANK];
  te_select_condition* made = NULL;
  if (te_select_kind_compared(relation, operands) != TE_SELECT_AS_IS &&
      te_select_join_compared(0, shape, te_select_view_of(one), te_select_view_of(other)) >= 0)
    made = te_select_new_condition();
  if (!made) {
    Py_DECREF(one);
    Py_XDECREF(other);
    return not_deferred();
  }
  made->leaves[0] = (te_select_condition_leaf){relation, {one, other}};
  made->leaf_count = 1;
  made->step_count = 1 + is_negated;
  made->steps[1] = TE_SELECT_NOT;
  return (PyObject*)made;
}

/* An array of one element: a number, whose type yields to that of another array. NULL without an
 * exception if NumPy would not convert it silently. */
static PyArrayObject* of_number(PyObject* number, PyArray_Descr* of) {
  char element[sizeof(((te_select_operand*)NULL)->element)];
  if (!te_select_yields(number, of, element)) return NULL;
  Py_INCREF(of);
  PyArrayObject* made = (PyArrayObject*)PyArray_SimpleNewFromDescr(0, NULL, of);
  if (made) memcpy(PyArray_BYTES(made), element, (size_t)PyDataType_ELSIZE(of));
  return made;
}

/* Takes what is compared: both are arrays afterwards, which are owned. Returns 0 if it is not
 * deferred. */
static int take_compared(PyObject* const values[2], PyArrayObject* arrays[2]) {
  te_select_operand taken[2] = {{0}};
  int is_taken = 1;
  for (int i = 0; i < 2 && is_taken; ++i) {
    int is_subclass = PyArray_Check(values[i]) && !PyArray_CheckExact(values[i]);
    is_taken = !is_subclass && te_select_take_side(values[i], &taken[i]) == TE_SELECT_TAKEN;
  }
  for (int i = 0; i < 2 && is_taken; ++i) {
    PyArrayObject* other = taken[1 - i].array;
    if (!taken[i].number) continue;
    taken[i].array = other ? of_number(taken[i].number, PyArray_DESCR(other)) : NULL;
    is_taken = taken[i].array != NULL;
  }
  for (int i = 0; i < 2; ++i) {
    arrays[i] = taken[i].array;
    if (!is_taken) Py_XDECREF(arrays[i]);
  }
  return is_taken;
}

/* A comparison, by Python's number of it; NotImplemented if it is not deferred. */
static PyObject* compare(PyObject* one, PyObject* other, int how) {
  PyObject* const values[2] = {one, other};
  PyArrayObject* arrays[2];
  if (!te_select_lazy_array(one) && !te_select_lazy_array(other)) return not_deferred();
  if (!take_compared(values, arrays)) return not_deferred();
  if (how == Py_EQ || how == Py_NE)
    return of_leaf(TE_SELECT_EQUAL, arrays[0], arrays[1], how == Py_NE);
  int is_swapped = how == Py_GT || how == Py_GE;
  int is_strict = how == Py_LT || how == Py_GT;
  return of_leaf(is_strict ? TE_SELECT_LESS : TE_SELECT_LESS_EQUAL, arrays[is_swapped],
                 arrays[!is_swapped], 0);
}

/* isnan or isfinite; NotImplemented if it is not deferred. */
static PyObject* classify(PyObject* value, int how) {
  PyArrayObject* array = te_select_lazy_array(value);
  if (!array || te_select_kind_of(PyArray_DESCR(array)) < TE_SELECT_KIND_FLOAT16)
    return not_deferred();
  Py_INCREF(array);
  if (how == TE_SELECT_ISFINITE) return of_leaf(TE_SELECT_IS_FINITE, array, NULL, 0);
  Py_INCREF(array);
  return of_leaf(TE_SELECT_EQUAL, array, array, 1);
}

/* A condition, or one that booleans are true; NotImplemented for other values. */
static PyObject* as_condition(PyObject* value) {
  if (te_select_as_condition(value)) return Py_NewRef(value);
  PyArrayObject* array = te_select_lazy_array(value);
  if (array) value = (PyObject*)array;
  int is_single = PyBool_Check(value) || PyArray_IsScalar(value, Bool);
  if (!is_single && !PyArray_CheckExact(value)) return not_deferred();
  array = (PyArrayObject*)PyArray_FromAny(value, NULL, 0, 0, 0, NULL);
  if (!array) return NULL;
  if (PyArray_TYPE(array) != NPY_BOOL) {
    Py_DECREF(array);
    return not_deferred();
  }
  return of_leaf(TE_SELECT_IS_TRUE, array, NULL, 0);
}

static void append(te_select_condition* to, const te_select_condition* from) {
  for (int32_t i = 0; i < from->step_count; ++i) {
    int8_t step = from->steps[i];
    to->steps[to->step_count++] = (int8_t)(step < 0 ? step : step + to->leaf_count);
  }
  for (int32_t i = 0; i < from->leaf_count; ++i) {
    te_select_condition_leaf* copied = &to->leaves[to->leaf_count++];
    *copied = from->leaves[i];
    Py_INCREF(copied->operands[0]);
    Py_XINCREF(copied->operands[1]);
  }
}

/* Whether two conditions fit into one, and broadcast. */
static int fit_together(const te_select_condition* one, const te_select_condition* other) {
  int64_t shapes[2][TE_SELECT_WHERE_RANK];
  if (one->leaf_count + other->leaf_count > TE_SELECT_LEAVES) return 0;
  if (one->step_count + other->step_count >= TE_SELECT_STEPS) return 0;
  int32_t ndim = te_select_condition_shape(one, shapes[0]);
  int32_t others = te_select_condition_shape(other, shapes[1]);
  te_select_view view = {others, shapes[1], NULL};
  return ndim >= 0 && others >= 0 &&
         te_select_join_compared(ndim, shapes[0], view, (te_select_view){0}) >= 0;
}

/* `&` or `|`; NotImplemented if it is not deferred. */
static PyObject* combine(PyObject* one, PyObject* other, int step) {
  PyObject *made = NULL, *first = as_condition(one), *second = NULL;
  if (first && first != Py_NotImplemented) second = as_condition(other);
  if (second && second != Py_NotImplemented) {
    const te_select_condition *left = (te_select_condition*)first,
                              *right = (te_select_condition*)second;
    te_select_condition* both = fit_together(left, right) ? te_select_new_condition() : NULL;
    if (both) {
      append(both, left);
      append(both, right);
      both->steps[both->step_count++] = (int8_t)step;
    }
    made = (PyObject*)both;
  }
  Py_XDECREF(first);
  Py_XDECREF(second);
  return made ? made : not_deferred();
}

static PyObject* negate(const te_select_condition* condition) {
  if (condition->step_count == TE_SELECT_STEPS) return not_deferred();
  te_select_condition* made = te_select_new_condition();
  if (!made) return NULL;
  append(made, condition);
  int is_twice = made->steps[made->step_count - 1] == TE_SELECT_NOT;
  if (is_twice) --made->step_count;
  else made->steps[made->step_count++] = TE_SELECT_NOT;
  return (PyObject*)made;
}

PyObject* te_select_deferred(int number, PyObject* one, PyObject* other) {
  if (number < TE_SELECT_ISNAN && other) return compare(one, other, number);
  if (number == TE_SELECT_ISNAN || number == TE_SELECT_ISFINITE) return classify(one, number);
  int is_any = te_select_as_condition(one) || (other && te_select_as_condition(other));
  if (!is_any) return not_deferred();
  if (number == TE_SELECT_LOGICAL_NOT || number == TE_SELECT_INVERT)
    return negate((te_select_condition*)one);
  int is_and = number == TE_SELECT_LOGICAL_AND || number == TE_SELECT_BITWISE_AND;
  return other ? combine(one, other, is_and ? TE_SELECT_AND : TE_SELECT_OR) : not_deferred();
}
