/* The exported functions of kernels that are loops. */
#include "host_toy.h"

int te_select_call_toy(const te_select_toy_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                       TVMFFIAny* result, te_select_mode mode) {
  int64_t sizes[TE_SELECT_MAX_NAMES];
  te_select_memory operands[TE_SELECT_OPERANDS];
  int found = te_select_check(&kernel->common, args, num_args, result, mode, sizes, operands);
  if (found < 0) return te_select_refused(mode);
  if (!found) return 0;
  void* data[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) data[i] = operands[i].data;
  kernel->run(data, sizes);
  return 0;
}
