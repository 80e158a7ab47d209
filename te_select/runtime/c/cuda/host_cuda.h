/* Kernels that run on CUDA devices. */
#pragma once

#include "host.h"

enum { TE_SELECT_MAX_DEVICES = 64 };

extern const te_select_device te_select_cuda;

/* Machine code for one architecture; the arch is 90 for sm_90. */
typedef struct {
  int arch;
  const void* cubin;
} te_select_image;

typedef struct {
  const char* archs; /* for messages: "sm_80, sm_90" */
  int num_images;
  const te_select_image* images;
  int ptx_arch;
  const char* ptx; /* for devices newer than every image */
  void** contexts; /* TE_SELECT_MAX_DEVICES of each, NULL until the device is first used */
  void** modules;
} te_select_cuda_library;

typedef struct {
  te_select_kernel common;
  te_select_cuda_library* library;
  const char* symbol;
  unsigned threads;                        /* of a block */
  int64_t (*blocks)(const int64_t* sizes); /* 0: nothing to launch */
  void** functions;                        /* TE_SELECT_MAX_DEVICES, NULL until first used */
} te_select_cuda_kernel;

/* Checks the arguments and launches the kernel on the current stream of the operands' device; does
 * not wait for it. Follows the calling convention of TVMFFISafeCallType. */
int te_select_call_cuda(const te_select_cuda_kernel* kernel, const TVMFFIAny* args,
                        int32_t num_args, TVMFFIAny* result, te_select_mode mode);

/* The same for a plain C function, on a stream: of the memory of cond, then, else and out, and the
 * sizes of the named dims. Returns a te_select_status. */
int te_select_call_plain_cuda(const te_select_cuda_kernel* kernel, void* const* data,
                              const int64_t* sizes, void* stream);
