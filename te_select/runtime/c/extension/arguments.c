/* What the arguments of a call are, and which element type they have in common. */
#include "arguments.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "where_abi.h"

enum { FIRST_OF_USERS = 256, FIRST_OF_NEW_TYPES = 2048, LARGEST_ELEMENT = 16 };
enum { EXACT_IN_HALF = 2048 };
static const double HALF_MAX = 65504.0, HALF_MIN = 0x1p-14; /* of normal numbers */

const te_select_verdict_in_python te_select_verdicts[TE_SELECT_VERDICTS] = {
    [TE_SELECT_TAKEN] = {"TAKEN", "none"},
    [TE_SELECT_FALLBACK_ARGUMENTS] = {"ARGUMENTS", "arguments"},
    [TE_SELECT_FALLBACK_CONVERSION] = {"CONVERSION", "conversion"},
    [TE_SELECT_FALLBACK_OPERAND_KIND] = {"OPERAND_KIND", "kind of operand"},
    [TE_SELECT_FALLBACK_ELEMENT_TYPE] = {"ELEMENT_TYPE", "element type"},
    [TE_SELECT_FALLBACK_PROMOTION] = {"PROMOTION", "promotion"},
    [TE_SELECT_FALLBACK_NUMBER] = {"NUMBER", "number"},
    [TE_SELECT_FALLBACK_SHAPE] = {"SHAPE", "shape"},
    [TE_SELECT_FALLBACK_OUT] = {"OUT", "out"},
    [TE_SELECT_FALLBACK_NO_KERNEL] = {"NO_KERNEL", "no kernel"},
};

/* Whether elements can be moved as bits, and nothing about the type is lost by it. */
static int moves_as_bits(const PyArray_Descr* type) {
  int number = type->type_num;
  npy_intp size = PyDataType_ELSIZE(type);
  if (size < 1 || size > LARGEST_ELEMENT || !PyArray_ISNBO(type->byteorder)) return 0;
  if (PyDataType_METADATA(type) || PyDataType_REFCHK(type)) return 0;
  if (PyTypeNum_ISNUMBER(number)) {
    return number != NPY_LONGDOUBLE && number != NPY_CLONGDOUBLE;
  }
  if (PyTypeNum_ISBOOL(number) || PyTypeNum_ISSTRING(number) || PyTypeNum_ISDATETIME(number)) {
    return 1;
  }
  if (number == NPY_VOID) return !PyDataType_HASFIELDS(type) && !PyDataType_HASSUBARRAY(type);
  /* Of the old kind that users may add, such as bfloat16. */
  return number >= FIRST_OF_USERS && number < FIRST_OF_NEW_TYPES;
}

static PyObject *name_of_rule, *numpys_rule, *result_type;

int te_select_remember_numpys_rules(PyObject* numpy) {
  name_of_rule = PyUnicode_InternFromString("__array_function__");
  if (name_of_rule) numpys_rule = PyObject_GetAttr((PyObject*)&PyArray_Type, name_of_rule);
  if (numpys_rule) result_type = PyObject_GetAttrString(numpy, "result_type");
  return result_type ? 0 : -1;
}

int te_select_has_own_rule(PyObject* value) {
  if (PyArray_CheckExact(value)) return 0; /* a look costs 12 ns */
  PyObject* rule = PyObject_GetAttr((PyObject*)Py_TYPE(value), name_of_rule);
  if (!rule) PyErr_Clear(); /* as NumPy does, whatever the error */
  Py_XDECREF(rule);
  return rule && rule != numpys_rule;
}

/* Takes a scalar of NumPy, or an array of a subclass. The latter becomes a plain array, so that its
 * conversion runs no code of the subclass. */
static te_select_verdict take_other(PyObject* value, te_select_operand* found) {
  int is_array = PyArray_Check(value);
  if (is_array ? te_select_has_own_rule(value)
               : !PyBool_Check(value) && !PyArray_IsScalar(value, Generic)) {
    return TE_SELECT_FALLBACK_OPERAND_KIND;
  }
  found->array = (PyArrayObject*)PyArray_FromAny(value, NULL, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);
  if (!found->array) return TE_SELECT_RAISED;
  /* A subclass of a scalar may have an __array_function__. */
  int is_known =
      is_array || PyBool_Check(value) || PyArray_DESCR(found->array)->typeobj == Py_TYPE(value);
  return is_known ? TE_SELECT_TAKEN : TE_SELECT_FALLBACK_OPERAND_KIND;
}

static te_select_verdict take_array(PyObject* value, te_select_operand* found) {
  if (!PyArray_CheckExact(value)) return take_other(value, found);
  found->array = (PyArrayObject*)Py_NewRef(value);
  return TE_SELECT_TAKEN;
}

int32_t te_select_kind_of(const PyArray_Descr* type) {
  int is_number = PyTypeNum_ISNUMBER(type->type_num) && PyArray_ISNBO(type->byteorder);
  return is_number ? te_select_kind_by(type->kind, PyDataType_ELSIZE(type)) : TE_SELECT_AS_IS;
}

static void convert_on_the_way(te_select_operands* found, int operand, int32_t kind) {
  found->sources.kinds[operand] = kind;
  found->is_staged = 1;
}

static te_select_verdict take_cond(PyObject* value, te_select_operands* of_call) {
  te_select_operand* found = &of_call->in[TE_SELECT_COND];
  if (te_select_is_number(value)) {
    int truth = PyObject_IsTrue(value);
    if (truth < 0) return TE_SELECT_RAISED;
    found->number = value;
    found->element[0] = (char)truth;
    return TE_SELECT_TAKEN;
  }
  te_select_verdict taken = take_array(value, found);
  if (taken != TE_SELECT_TAKEN) return taken;
  if (PyArray_TYPE(found->array) == NPY_BOOL) return TE_SELECT_TAKEN;
  int32_t kind = te_select_kind_of(PyArray_DESCR(found->array));
  if (kind == TE_SELECT_AS_IS) return TE_SELECT_FALLBACK_ELEMENT_TYPE;
  convert_on_the_way(of_call, TE_SELECT_COND, kind);
  return TE_SELECT_TAKEN;
}

static te_select_verdict take_side(PyObject* value, te_select_operand* found) {
  if (te_select_is_number(value)) {
    found->number = value;
    return TE_SELECT_TAKEN;
  }
  return take_array(value, found);
}

/* ---- numbers ------------------------------------------------------------------------------------ */

/* Whether a whole number of so many bits holds a value. */
static int holds(int bits, int is_signed, int64_t value) {
  int64_t high = value >> (bits - 1);
  return high == 0 || high == (is_signed ? -1 : 1);
}

static te_select_verdict from_long(PyObject* number, const PyArray_Descr* type, char* element) {
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow) return TE_SELECT_FALLBACK_NUMBER;
  if (value == -1 && PyErr_Occurred()) return TE_SELECT_RAISED;
  int kind = type->type_num;
  size_t size = (size_t)PyDataType_ELSIZE(type);
  if (PyTypeNum_ISINTEGER(kind)) {
    if (!holds(8 * (int)size, PyTypeNum_ISSIGNED(kind), value)) {
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

static te_select_verdict to_element(te_select_operand* found, PyArray_Descr* type) {
  PyObject* number = found->number;
  if (PyLong_CheckExact(number)) return from_long(number, type, found->element);
  if (PyFloat_CheckExact(number)) return from_float(number, type, found->element);
  Py_complex value = PyComplex_AsCComplex(number);
  return from_complex(value.real, value.imag, type, found->element);
}

/* ---- types -------------------------------------------------------------------------------------- */

int te_select_keeps_type(PyObject* number, int type) {
  if (PyLong_CheckExact(number)) return PyTypeNum_ISNUMBER(type) && type != NPY_BOOL;
  if (PyFloat_CheckExact(number)) return PyTypeNum_ISFLOAT(type) || PyTypeNum_ISCOMPLEX(type);
  return PyTypeNum_ISCOMPLEX(type);
}

static PyArray_Descr* of_numbers(PyObject* x, PyObject* y) {
  int type = PyComplex_CheckExact(x) || PyComplex_CheckExact(y) ? NPY_CDOUBLE
             : PyFloat_CheckExact(x) || PyFloat_CheckExact(y)   ? NPY_DOUBLE
                                                                : NPY_LONG;
  return PyArray_DescrFromType(type);
}

/* The type that two arrays have in common. */
static PyArray_Descr* of_arrays(PyArrayObject* x, PyArrayObject* y) {
  PyArray_Descr *first = PyArray_DESCR(x), *second = PyArray_DESCR(y);
  if (first == second || (first->type_num == second->type_num && first->type_num < FIRST_OF_USERS &&
                          PyArray_EquivTypes(first, second))) {
    return (PyArray_Descr*)Py_NewRef((PyObject*)first);
  }
  PyArrayObject* arrays[] = {x, y};
  return PyArray_ResultType(2, arrays, 0, NULL);
}

/* Whether a float32, or a part of a complex64, is a signalling NaN. */
static int is_signalling(const char* item, int32_t kind) {
  enum { QUIET = 1 << 22, EXPONENT = 0x7f800000, FRACTION = 0x007fffff };
  size_t parts = kind == TE_SELECT_KIND_COMPLEX64 ? 2 : kind == TE_SELECT_KIND_FLOAT16 + 1;
  for (size_t i = 0; i < parts; ++i) {
    uint32_t bits;
    memcpy(&bits, item + sizeof(bits) * i, sizeof(bits));
    if ((bits & EXPONENT) == EXPONENT && (bits & FRACTION) && !(bits & QUIET)) return 1;
  }
  return 0;
}

/* Converts a single date or duration to the unit of the result. NumPy 2.4 crashes in some conversions
 * of many. */
static te_select_verdict convert_unit(te_select_operand* in, PyArray_Descr* type) {
  PyArray_Descr* own = PyArray_DESCR(in->array);
  if (PyArray_SIZE(in->array) != 1 || own->type_num != type->type_num)
    return TE_SELECT_FALLBACK_PROMOTION;
  PyObject* made = PyArray_CastToType(in->array, (PyArray_Descr*)Py_NewRef((PyObject*)type), 0);
  if (!made) { /* NumPy is to tell of an overflow */
    PyErr_Clear();
    return TE_SELECT_FALLBACK_PROMOTION;
  }
  Py_SETREF(in->array, (PyArrayObject*)made);
  return TE_SELECT_TAKEN;
}

static te_select_verdict convert(te_select_operands* found, int operand) {
  PyArrayObject* array = found->in[operand].array;
  PyArray_Descr *own = PyArray_DESCR(array), *type = found->type;
  if (own == type || PyArray_EquivTypes(own, type)) return TE_SELECT_TAKEN;
  if (!moves_as_bits(own)) return TE_SELECT_FALLBACK_ELEMENT_TYPE;
  if (PyTypeNum_ISDATETIME(type->type_num)) return convert_unit(&found->in[operand], type);
  int32_t kind = te_select_kind_of(own);
  if (PyArray_NDIM(array) == 0 && is_signalling(PyArray_BYTES(array), kind))
    return TE_SELECT_FALLBACK_NUMBER; /* of a single one NumPy warns */
  found->sources.out_kind = te_select_kind_of(type);
  if (kind == TE_SELECT_AS_IS || found->sources.out_kind == TE_SELECT_AS_IS)
    return TE_SELECT_FALLBACK_ELEMENT_TYPE;
  convert_on_the_way(found, operand, kind);
  return TE_SELECT_TAKEN;
}

/* The type of a result whose number does not leave the type of the array as it is. */
static PyArray_Descr* of_number(PyArrayObject* array, PyObject* number) {
  PyObject* args[] = {(PyObject*)array, number};
  return (PyArray_Descr*)PyObject_Vectorcall(result_type, args, 2, NULL);
}

static te_select_verdict find_type(te_select_operands* found) {
  te_select_operand *x = &found->in[TE_SELECT_THEN], *y = &found->in[TE_SELECT_ELSE];
  if (x->array && y->array) {
    found->type = of_arrays(x->array, y->array);
  } else if (x->number && y->number) {
    found->type = of_numbers(x->number, y->number);
  } else {
    PyArrayObject* array = x->array ? x->array : y->array;
    PyObject* number = x->array ? y->number : x->number;
    PyArray_Descr* type = PyArray_DESCR(array);
    found->type = te_select_keeps_type(number, type->type_num)
                      ? (PyArray_Descr*)Py_NewRef((PyObject*)type)
                      : of_number(array, number);
  }
  if (!found->type) PyErr_Clear(); /* NumPy itself is to say why */
  return found->type && moves_as_bits(found->type) ? TE_SELECT_TAKEN
                                                   : TE_SELECT_FALLBACK_ELEMENT_TYPE;
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

te_select_verdict te_select_take(PyObject* const* args, const te_select_bits* bits,
                                 te_select_operands* found) {
  /* One by one: a memset of all of it is a rep stos, which starts slowly. */
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
    found->in[i].array = NULL;
    found->in[i].number = NULL;
    found->sources.kinds[i] = TE_SELECT_AS_IS;
  }
  found->type = NULL;
  found->bits = bits;
  found->sources.bits = NULL;
  found->is_staged = 0;
  te_select_verdict taken = take_side(args[TE_SELECT_THEN], &found->in[TE_SELECT_THEN]);
  if (taken == TE_SELECT_TAKEN) taken = take_side(args[TE_SELECT_ELSE], &found->in[TE_SELECT_ELSE]);
  /* cond is last: of a type that NumPy would refuse, another library may say something else. */
  if (bits) {
    convert_on_the_way(found, TE_SELECT_COND, TE_SELECT_KIND_BITS);
    found->sources.bits = bits->data;
  } else if (taken == TE_SELECT_TAKEN) {
    taken = take_cond(args[TE_SELECT_COND], found);
  }
  if (taken == TE_SELECT_TAKEN) taken = find_type(found);
  for (int i = TE_SELECT_THEN; taken == TE_SELECT_TAKEN && i < TE_SELECT_INPUTS; ++i) {
    te_select_operand* each = &found->in[i];
    taken = each->array ? convert(found, i) : to_element(each, found->type);
  }
  return taken;
}

void te_select_release(te_select_operands* found) {
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
    Py_XDECREF(found->in[i].array);
  }
  Py_XDECREF(found->type);
}
