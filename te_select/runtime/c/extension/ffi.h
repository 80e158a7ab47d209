/* The calling convention of tvm-ffi: DLTensor of dlpack.h, and TVMFFIAny of tvm/ffi/c_api.h. Both are
 * fixed for good. */
#ifndef TE_SELECT_FFI_H_
#define TE_SELECT_FFI_H_

#include "operands.h"

enum {
  TE_SELECT_FFI_NONE = 0,
  TE_SELECT_FFI_INT = 1,
  TE_SELECT_FFI_TENSOR = 7
}; /* kTVMFFINone, kTVMFFIInt, kTVMFFIDLTensorPtr */

typedef struct {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} te_select_tensor;

typedef struct {
  int32_t type_index;
  uint32_t padding;
  union {
    void* pointer;
    int64_t number;
  };
} te_select_any;

typedef int (*te_select_ffi_function)(void* self, const te_select_any* args, int32_t count,
                                      te_select_any* result);

/* Calls a function with all operands, without the interpreter's lock if there are many elements. */
static inline int te_select_call_ffi(te_select_ffi_function function, const te_select_any* given,
                                     int64_t elements, te_select_any* result) {
  if (elements < TE_SELECT_KEEP_LOCK) return function(NULL, given, TE_SELECT_OPERANDS, result);
  int failed;
  Py_BEGIN_ALLOW_THREADS;
  failed = function(NULL, given, TE_SELECT_OPERANDS, result);
  Py_END_ALLOW_THREADS;
  return failed;
}

#endif
