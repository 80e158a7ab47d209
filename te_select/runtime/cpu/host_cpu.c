/* The exported functions of kernels that run on the CPU, one for all kernels of a library. */
#include "host_cpu.h"

int te_select_call(const te_select_cpu_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                   TVMFFIAny* result, te_select_mode mode) {
  int64_t sizes[TE_SELECT_MAX_NAMES];
  te_select_memory operands[TE_SELECT_OPERANDS];
  int found = te_select_check(&kernel->common, args, num_args, result, mode, sizes, operands);
  if (found < 0) return te_select_refused(mode);
  if (!found) return 0;
  if (te_select_bad_threads()) {
    te_select_message m = te_select_begin(&kernel->common, -1);
    te_select_append(&m, "TE_SELECT_NUM_THREADS is '%s'; expected a positive whole number",
                     te_select_bad_threads());
    return te_select_fail("ValueError", &m);
  }

  int64_t stream = kernel->stream_from > 0 && operands[OUT].bytes >= kernel->stream_from;
  int64_t several = 0;
  if (kernel->bytes_per_thread > 0) {     /* else there is no parallel loop */
    int64_t moved = operands[COND].bytes; /* each of the four is below 2^61, see check_shape */
    for (int i = THEN; i <= OUT; ++i) moved += operands[i].bytes;
    several = moved >= 2 * kernel->bytes_per_thread;
    if (several) { /* division and thread-local memory are a tenth of a small call */
      int64_t threads = moved / kernel->bytes_per_thread;
      te_select_set_threads(threads > INT32_MAX ? INT32_MAX : (int32_t)threads);
    }
  }

  void* data[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) data[i] = operands[i].data;
  int failed = kernel->run(data, sizes, stream, !several && !stream);
  if (several) te_select_set_threads(1);
  if (failed) {
    te_select_message m = te_select_begin(&kernel->common, -1);
    te_select_append(&m, "the kernel failed");
    return te_select_fail("RuntimeError", &m);
  }
  if (stream) te_select_fence();
  return 0;
}
