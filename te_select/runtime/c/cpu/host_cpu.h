/* Kernels for CPUs: their descriptions, and how they are called. */
#pragma once

#include "decide.h"
#include "level.h"

/* A compiled function: int32_t (void*, void*, void*, void*, int64_t..., int64_t, int64_t, int64_t).
 * The parameters are cond, then, else, out, the size of every named dim, the flags, and the number of
 * a task and of all tasks. Every task does a share of the work. Nonzero means failure. */
typedef void (*te_select_code)(void);

/* Calls compiled code that has a certain number of named dims. */
typedef int32_t (*te_select_run)(te_select_code code, void* const data[TE_SELECT_OPERANDS],
                                 const int64_t* sizes, int64_t flags, int32_t task, int32_t tasks);

/* A kernel's code for one level. */
typedef struct {
  te_select_code code;
  te_select_knobs knobs;
} te_select_version;

typedef struct {
  te_select_kernel common;
  te_select_run run;
  const te_select_version* versions; /* one for each level of the library */
} te_select_cpu_kernel;

/* Checks the arguments and runs the kernel; nothing is written before every check has passed.
 * Follows the calling convention of TVMFFISafeCallType. */
int te_select_call(const te_select_cpu_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                   TVMFFIAny* result, te_select_mode mode);

/* The same for a plain C function: of the memory of cond, then, else and out, and the sizes of the
 * named dims. Returns a te_select_status. */
int te_select_call_plain(const te_select_cpu_kernel* kernel, void* const* data,
                         const int64_t* sizes);
