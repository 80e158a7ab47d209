/* The calling convention of tvm-ffi: DLTensor of dlpack.h, and TVMFFIAny of tvm/ffi/c_api.h. Both are
 * fixed for good. */
#ifndef TE_SELECT_FFI_H_
#define TE_SELECT_FFI_H_

#include "operands.h"

enum { OPERANDS = INPUTS + 1, OUT = INPUTS };
enum {
  NONE = 0,
  INTEGER = 1,
  TENSOR_POINTER = 7
}; /* kTVMFFINone, kTVMFFIInt, kTVMFFIDLTensorPtr */

typedef struct {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor;

typedef struct {
  int32_t type_index;
  uint32_t padding;
  union {
    void* pointer;
    int64_t number;
  };
} any;

typedef int (*ffi_function)(void* self, const any* args, int32_t count, any* result);

/* Calls a function with all operands, without the interpreter's lock if there are many elements. */
static inline int call_ffi(ffi_function function, const any* given, int64_t elements, any* result) {
  if (elements < KEEP_LOCK) return function(NULL, given, OPERANDS, result);
  int failed;
  Py_BEGIN_ALLOW_THREADS;
  failed = function(NULL, given, OPERANDS, result);
  Py_END_ALLOW_THREADS;
  return failed;
}

#endif
