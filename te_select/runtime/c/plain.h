/* What the plain C functions share: pointers and sizes become the tensors that are checked. */
#pragma once

#include "host.h"

typedef struct {
  TVMFFIAny args[TE_SELECT_OPERANDS]; /* as the exported functions take them */
  DLTensor tensors[TE_SELECT_OPERANDS];
  int64_t dims[TE_SELECT_OPERANDS][TE_SELECT_MAX_DIMS]; /* if the kernel has named dims */
} te_select_arguments;

/* Makes arguments of the memory of cond, then, else and out, its devices, and the size of every
 * named dim. Returns -1 with an error if a size is negative. */
int te_select_make_arguments(const te_select_kernel* kernel, void* const* data,
                             const DLDevice* devices, const int64_t* sizes,
                             te_select_arguments* taken);
