/* Calls with tensors of a library that has DLPack's exchange API, such as torch. */
#include <string.h>

#include "extension.h"
#include "ffi.h"

enum { REFUSED = -1 };

typedef struct {
  TVMFFISafeCallType function;
  const DLPackExchangeAPI* api;
  PyTypeObject* type; /* owned */
} tensor_entry;

static const char capsule_name[] = "te_select.tensor_entry";

/* Whether an input begins where out does, but has other strides. Torch refuses that, even if they
 * differ only along an axis of extent 1. */
static int is_out_otherwise(const DLTensor* input, const DLTensor* out) {
  if (input->data != out->data) return 0;
  size_t bytes = (size_t)out->ndim * sizeof(*out->strides);
  return input->ndim != out->ndim || memcmp(input->strides, out->strides, bytes) != 0;
}

static PyObject* call_with_tensors(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const tensor_entry* entry = PyCapsule_GetPointer(self, capsule_name);
  if (!entry) return NULL;
  DLTensor tensors[TE_SELECT_OPERANDS];
  TVMFFIAny given[TE_SELECT_OPERANDS], result = {.type_index = kTVMFFINone};
  if (count != TE_SELECT_OPERANDS) return PyLong_FromLong(REFUSED);
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (Py_TYPE(args[i]) != entry->type) return PyLong_FromLong(REFUSED);
    /* It lends the memory of shape and strides. */
    if (entry->api->dltensor_from_py_object_no_sync(args[i], &tensors[i])) {
      if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
      PyErr_Clear(); /* a tensor without memory, for example */
      return PyLong_FromLong(REFUSED);
    }
    given[i] = te_select_lent(&tensors[i]);
  }
  const DLTensor* out = &tensors[TE_SELECT_OUT];
  int64_t count_of_out = te_select_elements(out, TE_SELECT_KEEP_LOCK);
  /* The strides of a result without elements are torch's own affair. */
  if (!count_of_out || is_out_otherwise(&tensors[TE_SELECT_THEN], out) ||
      is_out_otherwise(&tensors[TE_SELECT_ELSE], out)) {
    return PyLong_FromLong(REFUSED);
  }
  int failed = te_select_call_ffi(entry->function, given, count_of_out, &result);
  if (failed || result.type_index != kTVMFFIInt || result.v_int64 < 0) {
    return PyLong_FromLong(REFUSED);
  }
  if (te_select_count(result.v_int64, te_select_elements(out, INT64_MAX))) return NULL;
  return PyLong_FromLongLong(result.v_int64);
}

static PyMethodDef definition = {"tensor_entry", TE_SELECT_FAST(call_with_tensors),
                                 "Select; negative if the tensors were refused."};

static void drop(PyObject* capsule) {
  tensor_entry* entry = PyCapsule_GetPointer(capsule, capsule_name);
  Py_XDECREF(entry->type);
  PyMem_Free(entry);
}

static const DLPackExchangeAPI* exchange_of(PyObject* type) {
  PyObject* capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
  if (!capsule) return NULL;
  const DLPackExchangeAPI* api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule);
  if (api && (api->header.version.major != DLPACK_MAJOR_VERSION ||
              !api->dltensor_from_py_object_no_sync)) {
    PyErr_Format(PyExc_ValueError, "DLPack's exchange API is of version %u",
                 api->header.version.major);
    return NULL;
  }
  return api;
}

PyObject* te_select_make_tensor_entry(PyObject* Py_UNUSED(module), PyObject* const* args,
                                      Py_ssize_t count) {
  if (count != 2 || !PyType_Check(args[1])) {
    return PyErr_Format(PyExc_TypeError, "expected the address of a function, and a type");
  }
  void* function = te_select_address(args[0]);
  const DLPackExchangeAPI* api = function ? exchange_of(args[1]) : NULL;
  if (!api) return NULL;
  tensor_entry* entry = PyMem_Malloc(sizeof(*entry));
  if (!entry) return PyErr_NoMemory();
  *entry = (tensor_entry){(TVMFFISafeCallType)function, api, (PyTypeObject*)Py_NewRef(args[1])};
  PyObject* capsule = PyCapsule_New(entry, capsule_name, drop);
  if (!capsule) {
    Py_DECREF(entry->type);
    PyMem_Free(entry);
  }
  return te_select_bind(&definition, capsule);
}
