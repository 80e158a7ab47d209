/* A stand-in for the NVIDIA driver, so that the host half is tested if there is no GPU.
 *
 * Memory of a device is memory of the CPU. A launch is recorded, and calls back into a function of
 * the CPU where one is registered for the kernel's name; what a stream captures is counted, and
 * not run when the graph is. Nothing is there until a test says so. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES = 8, RUNNERS = 256, DEPTH = 8, REGIONS = 4096, DEVICE_ORDINAL = 9 };
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_IMAGE = 200 };
enum { NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201 };

typedef int (*runner)(int64_t blocks, int threads, void** parameters); /* an error, or 0 */

typedef struct {
  char symbol[64];
  unsigned blocks, threads;
  void* stream;
  int device; /* of the context that was current */
  void* pointers[4];
} launch_record;

typedef struct {
  const void* image;
  int device;
} module;

typedef struct {
  const module* owner;
  char symbol[64];
} function;

static int devices, archs[DEVICES], launches, modules, initialized;
static launch_record last;
static char failing[64];
static int failing_code;
static int broken; /* the error of a kernel, which every later call returns */
static int num_runners;
static struct {
  char symbol[64];
  runner run;
} runners[RUNNERS];
static char first_bytes[32];
static __thread int current[DEPTH], depth;
static struct {
  uint64_t begin, size;
  int device;
} regions[REGIONS];      /* of memory that the driver knows; size 0: free */
static int used_regions; /* those behind have never been used */
static void* capturing;  /* the stream */
static int captured, replayed, waits;

/* ---- what tests set and ask ----------------------------------------------------------------- */

void fake_reset(void) {
  devices = launches = modules = num_runners = captured = replayed = waits = broken = 0;
  memset(regions, 0, sizeof(regions));
  used_regions = 0;
  capturing = NULL;
  failing[0] = 0;
  depth = 0;
  memset(&last, 0, sizeof(last));
}

void fake_device(int arch) { archs[devices++] = arch; }

/* Memory that the driver knows to be of a device. */
void fake_memory(int device, uint64_t begin, uint64_t size) {
  for (int i = 0; i < REGIONS; ++i) {
    if (regions[i].size) continue;
    regions[i].begin = begin;
    regions[i].size = size;
    regions[i].device = device;
    if (i >= used_regions) used_regions = i + 1;
    return;
  }
  abort();
}

/* Whether bytes are memory that the driver knows. */
int fake_knows(uint64_t at, uint64_t size) {
  for (int i = 0; i < used_regions; ++i) {
    if (at >= regions[i].begin && at + size <= regions[i].begin + regions[i].size) return 1;
  }
  return 0;
}

void fake_fail(const char* name, int code) {
  strncpy(failing, name, sizeof(failing) - 1);
  failing_code = code;
}

void fake_runner(const char* symbol, runner run) {
  strncpy(runners[num_runners].symbol, symbol, 63);
  runners[num_runners++].run = run;
}

int fake_launches(void) { return launches; }
int fake_modules(void) { return modules; }
int fake_depth(void) { return depth; }
int fake_waits(void) { return waits; }       /* for a stream or for all work */
int fake_replayed(void) { return replayed; } /* nodes of the graphs that were launched */
const char* fake_image(void) { return first_bytes; }
const launch_record* fake_last(void) { return &last; }

#define FAIL_IF_ASKED        \
  if (broken) return broken; \
  if (!strcmp(failing, __func__)) return failing_code

/* ---- the driver ----------------------------------------------------------------------------- */

int cuInit(unsigned flags) {
  FAIL_IF_ASKED;
  initialized = devices > 0;
  return devices ? 0 : NO_DEVICE;
}

int cuDeviceGetCount(int* count) {
  FAIL_IF_ASKED;
  *count = devices;
  return initialized ? 0 : NOT_INITIALIZED;
}

int cuDeviceGet(int* device, int ordinal) {
  FAIL_IF_ASKED;
  *device = ordinal;
  return ordinal < devices ? 0 : INVALID_DEVICE;
}

int cuDeviceGetName(char* name, int size, int device) {
  strncpy(name, "Fake GPU", size);
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = (size_t)1 << 30;
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  FAIL_IF_ASKED;
  if (device >= devices) return INVALID_DEVICE;
  *value = attribute == 75   ? archs[device] / 10
           : attribute == 76 ? archs[device] % 10
           : attribute == 38 ? 1 << 20
                             : 0;
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  FAIL_IF_ASKED;
  *context = (void*)(intptr_t)(0x1000 + device);
  return 0;
}

int cuCtxGetCurrent(void** context) {
  FAIL_IF_ASKED;
  *context = depth ? (void*)(intptr_t)(0x1000 + current[depth - 1]) : NULL;
  return 0;
}

int cuCtxPushCurrent_v2(void* context) {
  FAIL_IF_ASKED;
  if (depth == DEPTH) return INVALID_CONTEXT;
  current[depth++] = (int)((intptr_t)context - 0x1000);
  return 0;
}

int cuCtxPopCurrent_v2(void** context) {
  if (!depth) return INVALID_CONTEXT;
  *context = (void*)(intptr_t)(0x1000 + current[--depth]);
  return 0;
}

int cuModuleLoadData(void** out, const void* image) {
  FAIL_IF_ASKED;
  if (!depth) return INVALID_CONTEXT;
  if ((uintptr_t)image % 8) return INVALID_IMAGE; /* the header of a cubin is read in place */
  module* made = malloc(sizeof(module));
  *made = (module){image, current[depth - 1]};
  strncpy(first_bytes, image, sizeof(first_bytes) - 1);
  ++modules;
  *out = made;
  return 0;
}

int cuModuleGetFunction(void** out, void* owner, const char* name) {
  FAIL_IF_ASKED;
  if (!depth) return INVALID_CONTEXT;
  function* made = malloc(sizeof(function));
  made->owner = owner;
  strncpy(made->symbol, name, 63);
  *out = made;
  return 0;
}

int cuLaunchKernel(void* launched, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** parameters, void** extra) {
  FAIL_IF_ASKED;
  const function* f = launched;
  if (!depth || f->owner->device != current[depth - 1]) return INVALID_CONTEXT;
  ++launches;
  memcpy(last.symbol, f->symbol, sizeof(last.symbol));
  last.blocks = x * y * z;
  last.threads = bx * by * bz;
  last.stream = stream;
  last.device = current[depth - 1];
  for (int i = 0; i < 4; ++i) last.pointers[i] = *(void**)parameters[i];
  if (stream && stream == capturing) {
    ++captured;
    return 0;
  }
  for (int i = num_runners - 1; i >= 0; --i) {
    if (!strcmp(runners[i].symbol, f->symbol)) {
      broken = runners[i].run(x, (int)bx, parameters);
      break;
    }
  }
  return 0;
}

int cuStreamSynchronize(void* stream) {
  FAIL_IF_ASKED;
  ++waits;
  return depth ? 0 : INVALID_CONTEXT;
}

int cuCtxSynchronize(void) { return cuStreamSynchronize(NULL); }

/* A stream or an event; of a graph the number of its nodes. */
static int make(void** made, int nodes) {
  *made = calloc(1, sizeof(struct timespec));
  *(int*)*made = nodes;
  return 0;
}

int cuStreamCreate(void** stream, unsigned flags) {
  return depth ? make(stream, 0) : INVALID_CONTEXT;
}

int cuStreamBeginCapture_v2(void* stream, int mode) {
  FAIL_IF_ASKED;
  capturing = stream;
  captured = 0;
  return 0;
}

int cuStreamEndCapture(void* stream, void** graph) {
  capturing = NULL;
  return make(graph, captured);
}

int cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
  *count = (size_t)*(int*)graph;
  return 0;
}

int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) {
  return make(executable, *(int*)graph);
}

int cuGraphLaunch(void* executable, void* stream) {
  FAIL_IF_ASKED;
  replayed += *(int*)executable;
  return depth ? 0 : INVALID_CONTEXT;
}

int cuGraphDestroy(void* graph) {
  free(graph);
  return 0;
}

int cuGraphExecDestroy(void* executable) { return cuGraphDestroy(executable); }

int cuMemAlloc_v2(uint64_t* address, size_t size) {
  FAIL_IF_ASKED;
  if (!depth) return INVALID_CONTEXT;
  if (!size) return INVALID_VALUE;
  if (size > (size_t)1 << 30) return OUT_OF_MEMORY;
  *address = (uint64_t)(uintptr_t)aligned_alloc(256, (size + 255) / 256 * 256);
  fake_memory(current[depth - 1], *address, size);
  return 0;
}

int cuMemFree_v2(uint64_t address) {
  for (int i = 0; i < REGIONS; ++i) {
    if (regions[i].begin == address) regions[i].size = 0;
  }
  free((void*)(uintptr_t)address);
  return 0;
}

int cuPointerGetAttribute(void* data, int attribute, unsigned long long pointer) {
  FAIL_IF_ASKED;
  if (!initialized || attribute != DEVICE_ORDINAL) return NOT_INITIALIZED;
  for (int i = 0; i < REGIONS; ++i) {
    if (pointer >= regions[i].begin && pointer < regions[i].begin + regions[i].size) {
      *(int*)data = regions[i].device;
      return 0;
    }
  }
  return INVALID_VALUE;
}

int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t size) {
  FAIL_IF_ASKED;
  memcpy((void*)(uintptr_t)to, from, size);
  return 0;
}

int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t size) {
  FAIL_IF_ASKED;
  memcpy(to, (void*)(uintptr_t)from, size);
  return 0;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void* stream) {
  if (stream && stream == capturing) {
    ++captured;
    return 0;
  }
  memcpy((void*)(uintptr_t)to, (void*)(uintptr_t)from, size);
  return 0;
}

int cuEventCreate(void** event, unsigned flags) { return make(event, 0); }

int cuEventRecord(void* event, void* stream) { return clock_gettime(CLOCK_MONOTONIC, event); }

int cuEventSynchronize(void* event) { return 0; }

int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  const struct timespec *a = begin, *b = end;
  *milliseconds =
      (float)((double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) * 1e-6);
  return 0;
}

int cuGetErrorName(int code, const char** name) {
  *name = code == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_OF_THE_FAKE";
  return 0;
}

int cuGetErrorString(int code, const char** text) {
  *text = "a failure that a test asked for";
  return 0;
}
