/* Calls by the calling convention of tvm-ffi. Of its headers, only types are used. */
#ifndef TE_SELECT_FFI_H_
#define TE_SELECT_FFI_H_

#include <tvm/ffi/c_api.h>

#include "operands.h"

/* An argument that lends a tensor. */
static inline TVMFFIAny te_select_lent(DLTensor* t) {
  return (TVMFFIAny){.type_index = kTVMFFIDLTensorPtr, .v_ptr = t};
}

/* Calls a function with all operands, without the interpreter's lock if there are many elements. */
static inline int te_select_call_ffi(TVMFFISafeCallType function, const TVMFFIAny* given,
                                     int64_t elements, TVMFFIAny* result) {
  if (elements < TE_SELECT_KEEP_LOCK) return function(NULL, given, TE_SELECT_OPERANDS, result);
  int failed;
  Py_BEGIN_ALLOW_THREADS;
  failed = function(NULL, given, TE_SELECT_OPERANDS, result);
  Py_END_ALLOW_THREADS;
  return failed;
}

#endif
