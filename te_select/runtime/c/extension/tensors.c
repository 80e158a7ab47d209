/* Calls with tensors of a library that has DLPack's exchange API, such as torch. */
#include "tensors.h"

#include <string.h>

#include "counts.h"
#include "ffi.h"

enum { REFUSED = -1, MAJOR_VERSION = 1 };

/* DLPackExchangeAPI of dlpack.h, of which the last but one member is used. */
typedef struct {
  uint32_t major, minor;
  void* previous;
  void *allocate, *managed_from_object, *managed_to_object;
  int (*from_object)(void* object,
                     te_select_tensor* to); /* borrows the memory of shape and strides */
  void* stream;
} exchange;

typedef struct {
  te_select_ffi_function function;
  const exchange* api;
  PyTypeObject* type; /* owned */
} tensor_entry;

static const char capsule_name[] = "te_select.tensor_entry";

/* How many elements a tensor has, or some number of at least `most`. */
static int64_t elements(const te_select_tensor* t, int64_t most) {
  int64_t product = 1;
  for (int32_t i = 0; i < t->ndim && product < most; ++i) product *= t->shape[i];
  return product;
}

/* Whether an input begins where out does, but has other strides. Torch refuses that, even if they
 * differ only along an axis of extent 1. */
static int is_out_otherwise(const te_select_tensor* input, const te_select_tensor* out) {
  if (input->data != out->data) return 0;
  size_t bytes = (size_t)out->ndim * sizeof(*out->strides);
  return input->ndim != out->ndim || memcmp(input->strides, out->strides, bytes) != 0;
}

static PyObject* call_with_tensors(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const tensor_entry* entry = PyCapsule_GetPointer(self, capsule_name);
  if (!entry) return NULL;
  te_select_tensor tensors[TE_SELECT_OPERANDS];
  te_select_any given[TE_SELECT_OPERANDS], result = {TE_SELECT_FFI_NONE, 0, {NULL}};
  if (count != TE_SELECT_OPERANDS) return PyLong_FromLong(REFUSED);
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (Py_TYPE(args[i]) != entry->type) return PyLong_FromLong(REFUSED);
    if (entry->api->from_object(args[i], &tensors[i])) {
      if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
      PyErr_Clear(); /* a tensor without memory, for example */
      return PyLong_FromLong(REFUSED);
    }
    given[i] = (te_select_any){TE_SELECT_FFI_TENSOR, 0, {&tensors[i]}};
  }
  const te_select_tensor* out = &tensors[TE_SELECT_OUT];
  int64_t count_of_out = elements(out, TE_SELECT_KEEP_LOCK);
  /* The strides of a result without elements are torch's own affair. */
  if (!count_of_out || is_out_otherwise(&tensors[TE_SELECT_THEN], out) ||
      is_out_otherwise(&tensors[TE_SELECT_ELSE], out)) {
    return PyLong_FromLong(REFUSED);
  }
  int failed = te_select_call_ffi(entry->function, given, count_of_out, &result);
  if (failed || result.type_index != TE_SELECT_FFI_INT || result.number < 0) {
    return PyLong_FromLong(REFUSED);
  }
  if (te_select_count(result.number, elements(out, INT64_MAX))) return NULL;
  return PyLong_FromLongLong(result.number);
}

static PyMethodDef definition = {"tensor_entry", (PyCFunction)(void (*)(void))call_with_tensors,
                                 METH_FASTCALL, "Select; negative if the tensors were refused."};

static void drop(PyObject* capsule) {
  tensor_entry* entry = PyCapsule_GetPointer(capsule, capsule_name);
  Py_XDECREF(entry->type);
  PyMem_Free(entry);
}

static const exchange* exchange_of(PyObject* type) {
  PyObject* capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
  if (!capsule) return NULL;
  const exchange* api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule);
  if (api && (api->major != MAJOR_VERSION || !api->from_object)) {
    PyErr_Format(PyExc_ValueError, "DLPack's exchange API is of version %u", api->major);
    return NULL;
  }
  return api;
}

PyObject* te_select_make_tensor_entry(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if (count != 2 || !PyType_Check(args[1])) {
    return PyErr_Format(PyExc_TypeError, "expected the address of a function, and a type");
  }
  void* function = PyLong_AsVoidPtr(args[0]);
  if (PyErr_Occurred()) return NULL;
  if (!function) return PyErr_Format(PyExc_ValueError, "the address is 0");
  const exchange* api = exchange_of(args[1]);
  if (!api) return NULL;
  tensor_entry* entry = PyMem_Malloc(sizeof(*entry));
  if (!entry) return PyErr_NoMemory();
  *entry = (tensor_entry){(te_select_ffi_function)function, api, (PyTypeObject*)Py_NewRef(args[1])};
  PyObject* capsule = PyCapsule_New(entry, capsule_name, drop);
  if (!capsule) {
    Py_DECREF(entry->type);
    PyMem_Free(entry);
    return NULL;
  }
  PyObject* made = PyCFunction_New(&definition, capsule);
  Py_DECREF(capsule);
  return made;
}
