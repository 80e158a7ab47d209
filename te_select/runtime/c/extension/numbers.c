/* Numbers of Python as elements of an array. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "arguments.h"

enum { EXACT_IN_HALF = 2048 };
static const double HALF_MAX = 65504.0, HALF_MIN = 0x1p-14; /* of normal numbers */
static const long long EXACT_IN_DOUBLE = INT64_C(1) << 53;

static te_select_verdict from_long(PyObject* number, const PyArray_Descr* type, char* element) {
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow) return TE_SELECT_FALLBACK_NUMBER;
  if (value == -1 && PyErr_Occurred()) return TE_SELECT_RAISED;
  int kind = type->type_num;
  size_t size = (size_t)PyDataType_ELSIZE(type);
  if (PyTypeNum_ISINTEGER(kind)) {
    if (!te_select_holds(8 * (int)size, PyTypeNum_ISSIGNED(kind), value)) {
      return TE_SELECT_FALLBACK_NUMBER; /* NumPy raises, or wraps */
    }
    memcpy(element, &value, size);
  } else if (kind == NPY_FLOAT || kind == NPY_CFLOAT) {
    float parts[2] = {(float)value, 0};
    memcpy(element, parts, size);
  } else if (kind == NPY_DOUBLE || kind == NPY_CDOUBLE) {
    double parts[2] = {(double)value, 0};
    memcpy(element, parts, size);
  } else if (kind == NPY_HALF && value >= -EXACT_IN_HALF && value <= EXACT_IN_HALF) {
    return PyArray_Pack((PyArray_Descr*)type, element, number) < 0 ? TE_SELECT_RAISED
                                                                   : TE_SELECT_TAKEN;
  } else {
    return TE_SELECT_FALLBACK_NUMBER;
  }
  return TE_SELECT_TAKEN;
}

/* Whether converting a number raises none of the flags that NumPy looks at. */
static int is_quiet(double value, double lowest, double highest) {
  if (value == 0 || isinf(value)) return 1;
  if (!isnan(value)) return fabs(value) >= lowest && fabs(value) <= highest;
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits >> 51 & 1; /* a quiet NaN */
}

static te_select_verdict from_complex(double real, double imaginary, const PyArray_Descr* type,
                                      char* element) {
  size_t size = (size_t)PyDataType_ELSIZE(type);
  if (type->type_num == NPY_FLOAT || type->type_num == NPY_CFLOAT) {
    float parts[2] = {(float)real, (float)imaginary};
    if (!is_quiet(real, FLT_MIN, FLT_MAX) || !is_quiet(imaginary, FLT_MIN, FLT_MAX)) {
      return TE_SELECT_FALLBACK_NUMBER;
    }
    memcpy(element, parts, size);
  } else {
    double parts[2] = {real, imaginary};
    memcpy(element, parts, size);
  }
  return TE_SELECT_TAKEN;
}

static te_select_verdict from_float(PyObject* number, PyArray_Descr* type, char* element) {
  double value = PyFloat_AS_DOUBLE(number);
  if (type->type_num == NPY_HALF) {
    if (!is_quiet(value, HALF_MIN, HALF_MAX)) return TE_SELECT_FALLBACK_NUMBER;
    return PyArray_Pack(type, element, number) < 0 ? TE_SELECT_RAISED : TE_SELECT_TAKEN;
  }
  return from_complex(value, 0, type, element);
}

te_select_verdict te_select_to_element(te_select_operand* found, PyArray_Descr* type) {
  PyObject* number = found->number;
  if (PyLong_CheckExact(number)) return from_long(number, type, found->element);
  if (PyFloat_CheckExact(number)) return from_float(number, type, found->element);
  Py_complex value = PyComplex_AsCComplex(number);
  return from_complex(value.real, value.imag, type, found->element);
}

int te_select_keeps_type(PyObject* number, int type) {
  if (PyLong_CheckExact(number)) return PyTypeNum_ISNUMBER(type) && type != NPY_BOOL;
  if (PyFloat_CheckExact(number)) return PyTypeNum_ISFLOAT(type) || PyTypeNum_ISCOMPLEX(type);
  return PyTypeNum_ISCOMPLEX(type);
}

int te_select_exact_number(PyObject* number, PyArray_Descr* type, char* element) {
  int kind = type->type_num;
  if (PyBool_Check(number)) {
    element[0] = number == Py_True;
    return kind == NPY_BOOL;
  }
  if (PyFloat_CheckExact(number) && PyTypeNum_ISFLOAT(kind)) {
    return from_float(number, type, element) == TE_SELECT_TAKEN;
  }
  if (!PyLong_CheckExact(number)) return 0;
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (PyTypeNum_ISFLOAT(kind)) {
    if (value < -EXACT_IN_HALF || value > EXACT_IN_HALF) return 0;
  } else if (!PyTypeNum_ISINTEGER(kind)) {
    return 0;
  }
  return !overflow && from_long(number, type, element) == TE_SELECT_TAKEN;
}

int te_select_yields(PyObject* number, PyArray_Descr* type, char* element) {
  te_select_operand taken = {.number = number};
  if (te_select_kind_of(type) == TE_SELECT_AS_IS || !te_select_keeps_type(number, type->type_num))
    return 0;
  if (PyLong_CheckExact(number) && !PyTypeNum_ISINTEGER(type->type_num)) {
    int overflow; /* NumPy makes a float64 of an int, and of that a float32 */
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow || value < -EXACT_IN_DOUBLE || value > EXACT_IN_DOUBLE) return 0;
  }
  if (te_select_to_element(&taken, type) == TE_SELECT_TAKEN) {
    memcpy(element, taken.element, sizeof(taken.element));
    return 1;
  }
  PyErr_Clear(); /* NumPy itself is to say why */
  return 0;
}
