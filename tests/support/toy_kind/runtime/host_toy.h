/* Kernels that are loops. */
#ifndef TE_SELECT_HOST_TOY_H_
#define TE_SELECT_HOST_TOY_H_

#include "host.h"

typedef struct {
  te_select_kernel common;
  void (*run)(void* const* data, const int64_t* sizes);
} te_select_toy_kernel;

int te_select_call_toy(const te_select_toy_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                       TVMFFIAny* result, te_select_mode mode);

#endif
