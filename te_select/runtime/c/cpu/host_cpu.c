/* What an exported function of a CPU kernel does: it checks the arguments, decides how to run, and
 * calls the kernel. All kernels of a library share this code. */
#include "host_cpu.h"

#include <string.h>

#include "first_use.h"
#include "plain.h"
#include "pool.h"

/* ---- what a library tells ------------------------------------------------------------------------- */

/* What would be decided of a call: its threads, 1 bit for stores past the cache, and 1 bit for a look
 * at cond, which may depend on its values. The arguments are the bytes of cond, then, else and out,
 * the elements of out, and a te_select_knobs. */
TE_SELECT_EXPORT(te_select_plan) {
  enum { KNOBS = TE_SELECT_OPERANDS + 1, EXPECTED = KNOBS + sizeof(te_select_knobs) / 8 };
  int64_t given[EXPECTED] = {0};
  for (int32_t i = 0; i < num_args && i < EXPECTED; ++i) given[i] = args[i].v_int64;
  te_select_knobs knobs;
  memcpy(&knobs, given + KNOBS, sizeof(knobs));
  const te_select_cond unknown = {.data = NULL};
  te_select_manner how = te_select_decide(&te_select_here()->machine, &knobs, given, &unknown, 0);
  te_select_return_int(result, (int64_t)how.crew.threads << 2 |
                                   (how.flags & TE_SELECT_STREAM ? 2 : 0) |
                                   (how.flags & TE_SELECT_SKIP ? 1 : 0));
  return 0;
}

/* The address of the description of this machine: lines of "KEY = VALUE". */
TE_SELECT_EXPORT(te_select_machine) {
  te_select_return_int(result, (int64_t)(uintptr_t)te_select_here()->machine.text);
  return 0;
}

/* For a library that a forked child loads: it has not seen the fork. */
TE_SELECT_EXPORT(te_select_run_serially) {
  te_select_run_serially();
  te_select_return_int(result, 0);
  return 0;
}

/* The number of the level in use; 0 is the lowest. */
TE_SELECT_EXPORT(te_select_level) {
  const te_select_findings* here = te_select_here();
  const te_select_request nameless = {.mode = TE_SELECT_STRICT};
  if (here->level < 0) return te_select_fail(&nameless, -1, here->refused, "%s", here->refusal);
  te_select_return_int(result, here->level);
  return 0;
}

/* ---- the call ------------------------------------------------------------------------------------- */

typedef struct {
  te_select_run run;
  te_select_code code;
  void* const* data;
  const int64_t* sizes;
  int64_t flags;
} job;

static int run_task(int32_t task, int32_t tasks, void* data) {
  const job* j = data;
  return j->run(j->code, j->data, j->sizes, j->flags, task, tasks);
}

int te_select_call(const te_select_cpu_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                   TVMFFIAny* result, te_select_mode mode) {
  int64_t sizes[TE_SELECT_MAX_NAMES];
  te_select_memory operands[TE_SELECT_OPERANDS];
  int found = te_select_check(&kernel->common, args, num_args, result, mode, sizes, operands);
  if (found < 0) return te_select_refused(mode);
  if (!found) return 0;
  const te_select_findings* here = te_select_here();
  const te_select_request r = te_select_taken(&kernel->common, mode);
  if (here->refused) return te_select_fail(&r, -1, here->refused, "%s", here->refusal);
  const te_select_version* version = &kernel->versions[here->level];
  int64_t bytes[TE_SELECT_OPERANDS];
  void* data[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    bytes[i] = operands[i].bytes;
    data[i] = operands[i].data;
  }
  const te_select_cond cond = {.data = data[TE_SELECT_COND],
                               .run = operands[TE_SELECT_COND].count,
                               .in_place = data[TE_SELECT_THEN] == data[TE_SELECT_OUT] ||
                                           data[TE_SELECT_ELSE] == data[TE_SELECT_OUT],
                               .width = kernel->common.bits / 8};
  te_select_manner how = te_select_decide(&here->machine, &version->knobs, bytes, &cond, 0);
  int failed;
  if (how.crew.threads > 1) {
    job j = {kernel->run, version->code, data, sizes, how.flags};
    failed = te_select_parallel(run_task, &j, how.tasks, how.crew);
  } else {
    failed = kernel->run(version->code, data, sizes, how.flags, 0, 1);
  }
  if (how.flags & TE_SELECT_STREAM) te_select_fence();
  return failed ? te_select_fail(&r, -1, "RuntimeError", "the kernel failed") : 0;
}

int te_select_call_plain(const te_select_cpu_kernel* kernel, void* const* data,
                         const int64_t* sizes) {
  static const DLDevice devices[TE_SELECT_OPERANDS] = {
      {kDLCPU, 0}, {kDLCPU, 0}, {kDLCPU, 0}, {kDLCPU, 0}};
  te_select_arguments taken;
  TVMFFIAny result;
  int failed = te_select_make_arguments(&kernel->common, data, devices, sizes, &taken) ||
               te_select_call(kernel, taken.args, TE_SELECT_OPERANDS, &result, TE_SELECT_PLAIN);
  return te_select_status_of(failed);
}
