/* The exported functions of kernels that run on CUDA devices.
 *
 * The driver is found when a kernel is first called, so that a library loads without a driver.
 * The driver's types and numbers are repeated here, so that no header of CUDA is needed. */
#include "host_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <tvm/ffi/extra/c_env_api.h>

#include "plain.h"

const te_select_device te_select_cuda = {"a CUDA device", {kDLCUDA, kDLCUDAManaged}};

enum { INVALID_VALUE = 1, NOT_INITIALIZED = 3, STREAM_CAPTURE_UNSUPPORTED = 900 };
enum { INVALID_IMAGE = 200, NO_BINARY_FOR_GPU = 209, UNSUPPORTED_PTX_VERSION = 222 };
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, DEVICE_ORDINAL = 9 };
enum { LARGEST_ALIGNMENT = 8 }; /* 16-byte elements are read as two words if they must be */

typedef int result;

/* What is used of the driver: its place in `driver`, its name and its parameters. */
#define FUNCTIONS(X)                                                                             \
  X(init, "cuInit", unsigned)                                                                    \
  X(device_count, "cuDeviceGetCount", int*)                                                      \
  X(device_get, "cuDeviceGet", int*, int)                                                        \
  X(device_attribute, "cuDeviceGetAttribute", int*, int, int)                                    \
  X(primary_context, "cuDevicePrimaryCtxRetain", void**, int)                                    \
  X(current_context, "cuCtxGetCurrent", void**)                                                  \
  X(push_context, "cuCtxPushCurrent_v2", void*)                                                  \
  X(pop_context, "cuCtxPopCurrent_v2", void**)                                                   \
  X(load_module, "cuModuleLoadData", void**, const void*)                                        \
  X(get_function, "cuModuleGetFunction", void**, void*, const char*)                             \
  X(launch, "cuLaunchKernel", void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
    unsigned, void*, void**, void**)                                                             \
  X(pointer_attribute, "cuPointerGetAttribute", void*, int, unsigned long long)                  \
  X(error_name, "cuGetErrorName", result, const char**)                                          \
  X(error_string, "cuGetErrorString", result, const char**)

#define FIELD(place, name, ...) result (*place)(__VA_ARGS__);
static struct { FUNCTIONS(FIELD) int ready; } driver;
#define SYMBOL(place, name, ...) {&driver.place, name},
static const struct {
  void* place;
  const char* name;
} symbols[] = {FUNCTIONS(SYMBOL)};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The values of operands that are in memory of the CPU, passed with the launch. Mirrors
 * te_select_scalars of the kernels. */
typedef struct { _Alignas(16) unsigned char bytes[TE_SELECT_OUT][16]; } scalars;

/* ---- errors --------------------------------------------------------------------------------- */

static int fail_driver(const te_select_request* r, int operand, result code, const char* what) {
  const char *name = NULL, *text = NULL, *hint = "";
  driver.error_name(code, &name);
  driver.error_string(code, &text);
  if (code == NOT_INITIALIZED) {
    hint = " (a forked child cannot use CUDA after its parent has: spawn it)";
  } else if (code == STREAM_CAPTURE_UNSUPPORTED) {
    hint = " (the first call on a device loads code: call once before the capture)";
  }
  return te_select_fail(r, operand, "RuntimeError", "%s: CUDA error %d, %s: %s%s", what, code,
                        name ? name : "unknown", text ? text : "unknown", hint);
}

/* ---- devices: what is called with the lock held --------------------------------------------- */

static int start_driver(const te_select_request* r) {
  if (driver.ready) return 0;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return te_select_fail(r, -1, "RuntimeError",
                          "there is no NVIDIA driver (%s); install it to run kernels for CUDA",
                          dlerror());
  }
  for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); ++i) {
    void* found = dlsym(library, symbols[i].name);
    if (!found) {
      return te_select_fail(r, -1, "RuntimeError",
                            "libcuda.so.1 has no %s; a newer NVIDIA driver is needed",
                            symbols[i].name);
    }
    memcpy(symbols[i].place, &found, sizeof(found));
  }
  result code = driver.init(0);
  if (code) return fail_driver(r, -1, code, "the driver does not start");
  driver.ready = 1;
  return 0;
}

/* Machine code for this architecture, else for an older one of the same generation, else PTX. */
static const void* choose_image(const te_select_cuda_library* library, int arch) {
  const te_select_image* best = NULL;
  for (int i = 0; i < library->num_images; ++i) {
    const te_select_image* image = &library->images[i];
    if (image->arch / 10 == arch / 10 && image->arch <= arch &&
        (!best || image->arch > best->arch)) {
      best = image;
    }
  }
  if (best) return best->cubin;
  return arch >= library->ptx_arch ? library->ptx : NULL;
}

static int fail_arch(const te_select_request* r, const te_select_cuda_library* library, int device,
                     int arch) {
  return te_select_fail(
      r, -1, "RuntimeError",
      "holds code for %s and PTX of sm_%d, and CUDA device %d is sm_%d; compile it "
      "for cuda:sm_%d",
      library->archs, library->ptx_arch, device, arch, arch);
}

static int load_module(const te_select_request* r, te_select_cuda_library* library, int device,
                       int handle) {
  int major = 0, minor = 0;
  result code = driver.device_attribute(&major, CAPABILITY_MAJOR, handle);
  if (!code) code = driver.device_attribute(&minor, CAPABILITY_MINOR, handle);
  if (code) return fail_driver(r, -1, code, "the architecture of the device is not known");
  int arch = 10 * major + minor;
  const void* image = choose_image(library, arch);
  if (!image) return fail_arch(r, library, device, arch);
  code = driver.load_module(&library->modules[device], image);
  if (code == NO_BINARY_FOR_GPU) return fail_arch(r, library, device, arch);
  if (code == UNSUPPORTED_PTX_VERSION || code == INVALID_IMAGE) {
    return fail_driver(r, -1, code,
                       "the driver is older than the compiler that built the library; update it, "
                       "or compile with an older CUDA");
  }
  return code ? fail_driver(r, -1, code, "the code cannot be loaded to the device") : 0;
}

/* Finds the primary context of a device, which all libraries share; kept until the process ends. */
static int retain_context(const te_select_request* r, te_select_cuda_library* library, int device,
                          int* handle) {
  int count = 0;
  result code = driver.device_count(&count);
  if (code) return fail_driver(r, -1, code, "the devices cannot be counted");
  if (device >= count) {
    return te_select_fail(r, -1, "ValueError", "the operands are on CUDA device %d; there are %d",
                          device, count);
  }
  code = driver.device_get(handle, device);
  if (!code && !library->contexts[device]) {
    code = driver.primary_context(&library->contexts[device], *handle);
  }
  return code ? fail_driver(r, -1, code, "the device cannot be used") : 0;
}

/* Loads a kernel's code if it is not loaded yet. Modules stay loaded, because a graph or a queued
 * launch may need them after the library is gone. */
static int load_kernel(const te_select_request* r, const te_select_cuda_kernel* kernel, int device,
                       int handle) {
  te_select_cuda_library* library = kernel->library;
  if (kernel->functions[device]) return 0; /* loaded while this thread waited for the lock */
  if (!library->modules[device] && load_module(r, library, device, handle)) return -1;
  void* function = NULL;
  result code = driver.get_function(&function, library->modules[device], kernel->symbol);
  if (code) return fail_driver(r, -1, code, "the library does not hold the kernel");
  __atomic_store_n(&kernel->functions[device], function, __ATOMIC_RELEASE);
  return 0;
}

static int prepare_device(const te_select_request* r, const te_select_cuda_kernel* kernel,
                          int device) {
  int handle = 0;
  if (start_driver(r) || retain_context(r, kernel->library, device, &handle)) return -1;
  result code = driver.push_context(kernel->library->contexts[device]);
  if (code) return fail_driver(r, -1, code, "the device cannot be used");
  int failed = load_kernel(r, kernel, device, handle);
  void* popped;
  driver.pop_context(&popped);
  return failed;
}

static int prepare(const te_select_request* r, const te_select_cuda_kernel* kernel, int device) {
  int known = device >= 0 && device < TE_SELECT_MAX_DEVICES;
  if (known && __atomic_load_n(&kernel->functions[device], __ATOMIC_ACQUIRE)) return 0;
  if (!known) {
    return te_select_fail(r, -1, "ValueError",
                          "the operands are on CUDA device %d; at most %d devices are supported",
                          device, TE_SELECT_MAX_DEVICES);
  }
  pthread_mutex_lock(&lock);
  int failed = prepare_device(r, kernel, device);
  pthread_mutex_unlock(&lock);
  return failed;
}

/* ---- the call ------------------------------------------------------------------------------- */

static int check_devices(const te_select_request* r, const te_select_memory* operands) {
  int device = operands[TE_SELECT_OUT].device;
  int width = r->kernel->bits / 8;
  uintptr_t aligned = (uintptr_t)(width < LARGEST_ALIGNMENT ? width : LARGEST_ALIGNMENT);
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (operands[i].device == TE_SELECT_HOST) continue;
    if (operands[i].device != device) {
      return te_select_fail(r, i, "ValueError",
                            "is on CUDA device %d and out on %d; expected one device",
                            operands[i].device, device);
    }
    if (i != TE_SELECT_COND && (uintptr_t)operands[i].data % aligned) {
      return te_select_fail(r, i, "ValueError", "begins at %p; expected an address divisible by %d",
                            (void*)operands[i].data, (int)aligned);
    }
  }
  return 0;
}

/* The stream that tvm-ffi was given for a device; the default stream without tvm-ffi. */
static void* current_stream(int device) {
  typedef void* (*get_stream)(int32_t, int32_t);
  static _Atomic(get_stream) known;
  get_stream get = known;
  if (!get) known = get = (get_stream)te_select_tvm_ffi("TVMFFIEnvGetStream");
  return get ? get(kDLCUDA, device) : NULL;
}

static int launch(const te_select_request* r, const te_select_cuda_kernel* kernel,
                  te_select_memory* operands, int64_t* sizes, void* const* stream) {
  int64_t blocks = kernel->blocks(sizes);
  if (!blocks) return 0;
  int device = operands[TE_SELECT_OUT].device;
  scalars values;
  memset(&values, 0, sizeof(values));
  void* parameters[TE_SELECT_OPERANDS + TE_SELECT_MAX_NAMES + 1];
  int count = 0;
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (operands[i].device == TE_SELECT_HOST) {
      memcpy(values.bytes[i], operands[i].data, (size_t)operands[i].bytes);
      operands[i].data = NULL;
    }
    parameters[count++] = &operands[i].data;
  }
  for (int i = 0; i < kernel->common.num_names; ++i) parameters[count++] = &sizes[i];
  parameters[count] = &values;

  void *context = kernel->library->contexts[device], *current = NULL;
  result code = driver.current_context(&current);
  int pushed = !code && current != context;
  if (pushed) code = driver.push_context(context);
  if (!code) {
    code = driver.launch(kernel->functions[device], (unsigned)blocks, 1, 1, kernel->threads, 1, 1,
                         0, stream ? *stream : current_stream(device), parameters, NULL);
    if (pushed) driver.pop_context(&current);
  }
  return code ? fail_driver(r, -1, code, "the kernel cannot be launched") : 0;
}

/* Runs a kernel on a stream; NULL for the one that tvm-ffi knows. */
static int call(const te_select_cuda_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                TVMFFIAny* out, te_select_mode mode, void* const* stream) {
  int64_t sizes[TE_SELECT_MAX_NAMES];
  te_select_memory operands[TE_SELECT_OPERANDS];
  int found = te_select_check(&kernel->common, args, num_args, out, mode, sizes, operands);
  if (found < 0) return te_select_refused(mode);
  if (!found) return 0;
  const te_select_request r = te_select_taken(&kernel->common, mode);
  if (check_devices(&r, operands) || prepare(&r, kernel, operands[TE_SELECT_OUT].device)) return -1;
  return launch(&r, kernel, operands, sizes, stream);
}

int te_select_call_cuda(const te_select_cuda_kernel* kernel, const TVMFFIAny* args,
                        int32_t num_args, TVMFFIAny* out, te_select_mode mode) {
  return call(kernel, args, num_args, out, mode, NULL);
}

/* ---- the plain C functions ------------------------------------------------------------------ */

/* Where memory is: on a device, or on the CPU if the driver does not know it. */
static int find_device(const te_select_request* r, int operand, const void* memory,
                       DLDevice* device) {
  pthread_mutex_lock(&lock);
  int failed = start_driver(r);
  int ordinal = 0;
  pthread_mutex_unlock(&lock);
  if (failed) return -1;
  result code = driver.pointer_attribute(&ordinal, DEVICE_ORDINAL, (uintptr_t)memory);
  if (code && code != INVALID_VALUE) {
    return fail_driver(r, operand, code, "is memory of which the driver cannot tell the device");
  }
  *device = code ? (DLDevice){kDLCPU, 0} : (DLDevice){kDLCUDA, ordinal};
  return 0;
}

int te_select_call_plain_cuda(const te_select_cuda_kernel* kernel, void* const* data,
                              const int64_t* sizes, void* stream) {
  const te_select_request r = {.kernel = &kernel->common, .mode = TE_SELECT_PLAIN};
  DLDevice devices[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    devices[i] = (DLDevice){kDLCUDA, 0};
    if (!data[i]) continue; /* refused later, unless it has no element */
    if (find_device(&r, i, data[i], &devices[i])) return te_select_status_of(-1);
  }
  te_select_arguments taken;
  TVMFFIAny ignored;
  int failed = te_select_make_arguments(&kernel->common, data, devices, sizes, &taken) ||
               call(kernel, taken.args, TE_SELECT_OPERANDS, &ignored, TE_SELECT_PLAIN, &stream);
  return te_select_status_of(failed);
}
