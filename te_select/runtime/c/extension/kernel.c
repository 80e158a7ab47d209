/* Calls of compiled kernels with NumPy arrays or tensors of tvm-ffi, in its calling convention. */
#include "ffi.h"

static const char capsule_name[] = "te_select.kernel";
/* tvm_ffi.Tensor and its method `__chandle__`; set once, by an import, before kernels are called. */
static PyTypeObject* tensor_type;
static PyObject* handle_of;

static int code_of(const PyArray_Descr* type) {
  int number = type->type_num;
  if (!PyArray_ISNBO(type->byteorder)) return -1;
  if (number == NPY_BOOL) return kDLBool;
  if (number == NPY_LONGDOUBLE || number == NPY_CLONGDOUBLE) return -1;
  if (PyTypeNum_ISUNSIGNED(number)) return kDLUInt;
  if (PyTypeNum_ISINTEGER(number)) return kDLInt;
  if (PyTypeNum_ISFLOAT(number)) return kDLFloat;
  return PyTypeNum_ISCOMPLEX(number) ? kDLComplex : -1;
}

static int describe(DLTensor* t, void* data, PyArray_Descr* type, int ndim, npy_intp* shape) {
  int code = code_of(type);
  if (code < 0) return 0;
  *t = (DLTensor){.data = data,
                  .device = {kDLCPU, 0},
                  .ndim = ndim,
                  .dtype = {(uint8_t)code, (uint8_t)(8 * PyDataType_ELSIZE(type)), 1},
                  .shape = (int64_t*)shape};
  return 1;
}

static int from_array(DLTensor* t, PyObject* value) {
  if (!PyArray_CheckExact(value)) return 0;
  PyArrayObject* array = (PyArrayObject*)value;
  return PyArray_IS_C_CONTIGUOUS(array) && describe(t, PyArray_DATA(array), PyArray_DESCR(array),
                                                    PyArray_NDIM(array), PyArray_DIMS(array));
}

/* Takes a scalar of NumPy that has the type itself, or a number of Python. */
static int from_number(DLTensor* t, PyObject* value, PyArray_Descr* type, char* element) {
  if (!PyArray_IsScalar(value, Generic)) {
    return te_select_exact_number(value, type, element) && describe(t, element, type, 0, NULL);
  }
  PyArray_Descr* own = PyArray_DescrFromScalar(value);
  int same = own && own->type_num == type->type_num && code_of(own) >= 0;
  Py_XDECREF(own);
  if (!same) return 0;
  PyArray_ScalarAsCtype(value, element);
  return describe(t, element, type, 0, NULL);
}

static PyObject* call_with_arrays(TVMFFISafeCallType function, PyObject* const* args) {
  DLTensor tensors[TE_SELECT_OPERANDS];
  char elements[TE_SELECT_INPUTS][16];
  if (!from_array(&tensors[TE_SELECT_OUT], args[TE_SELECT_OUT])) Py_RETURN_FALSE;
  PyArrayObject* out = (PyArrayObject*)args[TE_SELECT_OUT];
  if (!PyArray_ISWRITEABLE(out)) Py_RETURN_FALSE;
  PyArray_Descr* boolean = NULL;
  TVMFFIAny given[TE_SELECT_OPERANDS], result = {.type_index = kTVMFFINone};
  int taken = 1;
  for (int i = 0; taken && i < TE_SELECT_INPUTS; ++i) {
    if (from_array(&tensors[i], args[i])) continue;
    if (i == TE_SELECT_COND) boolean = PyArray_DescrFromType(NPY_BOOL);
    PyArray_Descr* type = i == TE_SELECT_COND ? boolean : PyArray_DESCR(out);
    taken = from_number(&tensors[i], args[i], type, elements[i]);
  }
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) given[i] = te_select_lent(&tensors[i]);
  if (taken) taken = !te_select_call_ffi(function, given, PyArray_SIZE(out), &result);
  Py_XDECREF(boolean);
  if (PyErr_Occurred()) return NULL;
  return PyBool_FromLong(taken && result.type_index != kTVMFFINone);
}

static PyObject* call_with_tensors(TVMFFISafeCallType function, PyObject* const* args) {
  TVMFFIAny given[TE_SELECT_OPERANDS], result = {.type_index = kTVMFFINone};
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (!PyObject_TypeCheck(args[i], tensor_type)) Py_RETURN_FALSE;
    PyObject* address = PyObject_CallOneArg(handle_of, args[i]);
    if (!address) return NULL;
    TVMFFIObject* tensor = PyLong_AsVoidPtr(address);
    Py_DECREF(address);
    if (!tensor) Py_RETURN_FALSE; /* it was made by `__new__`, and has no memory */
    given[i] = (TVMFFIAny){.type_index = kTVMFFITensor, .v_obj = tensor};
  }
  const DLTensor* out = (const DLTensor*)(given[TE_SELECT_OUT].v_obj + 1); /* behind the head */
  int64_t elements = te_select_elements(out, TE_SELECT_KEEP_LOCK);
  int failed = te_select_call_ffi(function, given, elements, &result);
  return PyBool_FromLong(!failed && result.type_index != kTVMFFINone);
}

static PyObject* call_kernel(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  TVMFFISafeCallType function = (TVMFFISafeCallType)PyCapsule_GetPointer(self, capsule_name);
  if (!function) return NULL;
  if (count != TE_SELECT_OPERANDS) Py_RETURN_FALSE;
  return tensor_type && PyObject_TypeCheck(args[TE_SELECT_OUT], tensor_type)
             ? call_with_tensors(function, args)
             : call_with_arrays(function, args);
}

static PyMethodDef definition = {"entry", TE_SELECT_FAST(call_kernel),
                                 "Call a kernel; false if it did not take the arguments."};

PyObject* te_select_make_entry(PyObject* Py_UNUSED(module), PyObject* address) {
  void* function = te_select_address(address);
  if (!function) return NULL;
  return te_select_bind(&definition, PyCapsule_New(function, capsule_name, NULL));
}

PyObject* te_select_take_tensors(PyObject* Py_UNUSED(module), PyObject* type) {
  if (!PyType_Check(type)) return PyErr_Format(PyExc_TypeError, "expected a type");
  if (tensor_type) Py_RETURN_NONE;
  PyObject* found = PyObject_GetAttrString(type, "__chandle__");
  if (!found) return NULL;
  handle_of = found;
  tensor_type = (PyTypeObject*)Py_NewRef(type);
  Py_RETURN_NONE;
}
