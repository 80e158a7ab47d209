/* What an exported function of a CPU kernel does: it checks the arguments, decides how to run, and
 * calls the kernel. All kernels of a library share this code. */
#include "host_cpu.h"

#include "look.h"
#include "machine.h"
#include "plain.h"
#include "shares.h"

/* ---- decisions ------------------------------------------------------------------------------------ */

/* Decides the flags of a call. Unless the call is small, also sets how its parallel loop runs. */
static int64_t decide(const te_select_version* version, const te_select_memory* operands) {
  const te_select_machine* machine = te_select_this_machine();
  const te_select_decisions* by_machine = &machine->decisions;
  int64_t out = operands[OUT].bytes; /* each is below 2^61, see check_shape */
  int64_t moved =
      te_select_moved(operands[COND].bytes, operands[THEN].bytes, operands[ELSE].bytes, out);
  int64_t grain = version->bytes_per_thread;
  if (grain == TE_SELECT_BY_MACHINE) grain = by_machine->bytes_per_thread;
  int64_t flags = 0;
  int32_t threads = 1;
  int several = grain > 0 && moved >= 2 * grain;
  if (several) { /* a small call would spend a tenth of its time on this */
    threads = te_select_threads_for(moved, grain);
    te_select_set_parallel(threads, (int32_t)te_select_tasks_for(moved, threads));
    int64_t skip = version->skip;
    if (skip == TE_SELECT_BY_MACHINE) {
      te_select_cond cond = {.data = operands[COND].data, .run = operands[COND].count};
      int64_t width = out / operands[OUT].count;
      skip = te_select_looks(machine, &cond, version->reads_cond_once, width);
    }
    if (skip) flags |= TE_SELECT_SKIP;
  }
  int streams = version->stream_from > 0 && out >= version->stream_from;
  if (version->stream_from == TE_SELECT_BY_MACHINE) {
    streams = te_select_streams(machine, moved, out, version->is_fill, threads);
  }
  if (streams) flags |= TE_SELECT_STREAM;
  if (!several && !streams) flags |= TE_SELECT_SMALL;
  int64_t backwards = version->backwards;
  if (backwards == TE_SELECT_BY_MACHINE) backwards = by_machine->backwards;
  if (backwards) flags |= TE_SELECT_BACKWARDS;
  return flags;
}

/* The address of the description of this machine: lines of "KEY = VALUE". */
TVM_FFI_DLL_EXPORT int __tvm_ffi_te_select_machine(void* self, const TVMFFIAny* args,
                                                   int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)args, (void)num_args;
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = (int64_t)(uintptr_t)te_select_machine_text();
  return 0;
}

/* ---- the call ------------------------------------------------------------------------------------- */

/* The level whose code runs, or -1: every call is refused. To ask in every call took 3 ns of 23
 * (Zen 5, a single element). */
static int32_t level_in_use = -1;

__attribute__((constructor(400))) static void take_level(void) {
  if (!te_select_bad_threads() && !te_select_bad_profile()) level_in_use = te_select_level_here();
}

static int refuse(const te_select_cpu_kernel* kernel, te_select_mode mode) {
  te_select_message m = te_select_begin(&kernel->common, mode, -1);
  if (te_select_level_here() < 0) return te_select_refuse_level(&m);
  if (te_select_bad_threads()) {
    te_select_append(&m, "TE_SELECT_NUM_THREADS is '%s'; expected a positive whole number",
                     te_select_bad_threads());
  } else {
    te_select_append(&m, "%s", te_select_bad_profile());
  }
  return te_select_fail("ValueError", &m);
}

int te_select_call(const te_select_cpu_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                   TVMFFIAny* result, te_select_mode mode) {
  int64_t sizes[TE_SELECT_MAX_NAMES];
  te_select_memory operands[TE_SELECT_OPERANDS];
  int found = te_select_check(&kernel->common, args, num_args, result, mode, sizes, operands);
  if (found < 0) return te_select_refused(mode);
  if (!found) return 0;
  if (level_in_use < 0) return refuse(kernel, mode);
  const te_select_version* version = &kernel->versions[level_in_use];
  int64_t flags = decide(version, operands);
  void* data[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) data[i] = operands[i].data;
  int failed = kernel->run(version->code, data, sizes, flags);
  if (!(flags & TE_SELECT_SMALL)) te_select_set_parallel(1, 1);
  if (flags & TE_SELECT_STREAM) te_select_fence();
  if (failed) {
    te_select_message m = te_select_begin(&kernel->common, mode, -1);
    te_select_append(&m, "the kernel failed");
    return te_select_fail("RuntimeError", &m);
  }
  return 0;
}

int te_select_call_plain(const te_select_cpu_kernel* kernel, void* const* data,
                         const int64_t* sizes) {
  static const DLDevice devices[TE_SELECT_OPERANDS] = {
      {kDLCPU, 0}, {kDLCPU, 0}, {kDLCPU, 0}, {kDLCPU, 0}};
  te_select_arguments taken;
  TVMFFIAny result;
  int failed = te_select_take(&kernel->common, data, devices, sizes, &taken) ||
               te_select_call(kernel, taken.args, TE_SELECT_OPERANDS, &result, TE_SELECT_PLAIN);
  return te_select_status_of(failed);
}
