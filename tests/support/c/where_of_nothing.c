/* Selects tensors of rank 0 without pointers to shape and strides, or without elements and memory. */
#include <stdio.h>

#include "where_in_c.c"

int __tvm_ffi_te_select_where(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

int main(int count, char** words) {
  int has_elements = count > 1 && !strcmp(words[1], "rank 0");
  int64_t shape[] = {3, 0}, strides[] = {-1, 1};
  double memory[TE_SELECT_OPERANDS] = {0};
  DLTensor tensors[TE_SELECT_OPERANDS];
  TVMFFIAny args[TE_SELECT_OPERANDS], result;
  memset(args, 0, sizeof(args));
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    tensors[i] =
        (DLTensor){.data = has_elements ? &memory[i] : NULL,
                   .device = {kDLCPU, 0},
                   .ndim = has_elements ? 0 : 2,
                   .dtype = i ? (DLDataType){kDLFloat, 64, 1} : (DLDataType){kDLBool, 8, 1},
                   .shape = has_elements ? NULL : shape,
                   .strides = has_elements ? NULL : strides,
                   .byte_offset = count > 1 && strstr(words[1], "offset") ? 8 : 0};
    args[i].type_index = kTVMFFIDLTensorPtr;
    args[i].v_ptr = &tensors[i];
  }
  int failed = __tvm_ffi_te_select_where(NULL, args, TE_SELECT_OPERANDS, &result);
  printf("%d\n", failed ? failed : (int)result.v_int64);
  return 0;
}
