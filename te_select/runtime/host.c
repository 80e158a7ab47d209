/* The argument checks of the exported functions, one for all kernels of a library. */
#include "host.h"

#include <stdarg.h>
#include <stdio.h>

enum { COND, THEN, ELSE, OUT };
enum { MAX_DIMS_SHOWN = 64 }; /* a kernel's own rank is no greater */

static const char* const operand_names[TE_SELECT_OPERANDS] = {"cond", "then", "else_", "out"};

typedef struct {
  char* data;
  int64_t count; /* elements */
  int64_t bytes;
} memory;

/* ---- messages ------------------------------------------------------------------------------- */

typedef struct {
  char text[1024];
  size_t used;
} message;

static void append(message* m, const char* format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(m->text + m->used, sizeof(m->text) - m->used, format, args);
  va_end(args);
  if (n > 0) m->used += (size_t)n;
  if (m->used >= sizeof(m->text)) m->used = sizeof(m->text) - 1;
}

static void append_dims(message* m, int32_t ndim, const int64_t* dims, const char* const* names) {
  append(m, "[");
  for (int32_t i = 0; i < ndim; ++i) {
    if (i) append(m, ",");
    if (i == MAX_DIMS_SHOWN) {
      append(m, "...");
      break;
    }
    if (names && dims[i] < 0) {
      append(m, "%s", names[-(dims[i] + 1)]);
    } else {
      append(m, "%lld", (long long)dims[i]);
    }
  }
  append(m, "]");
}

static message begin(const te_select_kernel* kernel, int operand) {
  message m;
  m.used = 0;
  append(&m, "%s: %s ", kernel->name, operand_names[operand]);
  return m;
}

static int fail(const char* kind, const message* m) {
  TVMFFIErrorSetRaisedFromCStr(kind, m->text);
  return -1;
}

/* ---- checks: 0, or -1 with an error raised ------------------------------------------------------ */

static int check_shape(const te_select_kernel* kernel, int operand, const DLTensor* t, int pair,
                       int64_t* sizes, int64_t* count) {
  const te_select_shape* expected = &kernel->shapes[operand];
  int32_t ndim = expected->ndim;
  int64_t n = 1;
  int empty = 0;
  int32_t i = 0;
  if (t->ndim != ndim + pair || (pair && t->shape[ndim] != 2)) goto mismatch;
  for (; i < ndim; ++i) {
    int64_t extent = t->shape[i], want = expected->dims[i];
    if (want < 0) {
      int64_t* size = &sizes[-(want + 1)];
      if (*size < 0) *size = extent;
      want = *size;
    }
    if (extent != want || extent < 0) goto mismatch;
    if (extent == 0) {
      empty = 1;
    } else if (__builtin_mul_overflow(n, extent, &n) || n > INT64_MAX / 64) {
      message m = begin(kernel, operand);
      append(&m, "has too many elements: shape ");
      append_dims(&m, t->ndim, t->shape, NULL);
      append(&m, "; fewer than 2^57 are supported");
      return fail("ValueError", &m);
    }
  }
  *count = empty ? 0 : n;
  return 0;

mismatch:;
  message m = begin(kernel, operand);
  append(&m, "has shape ");
  append_dims(&m, t->ndim, t->shape, NULL);
  append(&m, "; expected ");
  append_dims(&m, ndim, expected->dims, kernel->names);
  if (pair) append(&m, " and a last axis of 2");
  if (t->ndim == ndim + pair && i < ndim && expected->dims[i] < 0 && t->shape[i] >= 0) {
    int64_t name = -(expected->dims[i] + 1);
    append(&m, " with %s = %lld as in an earlier argument or axis", kernel->names[name],
           (long long)sizes[name]);
  }
  return fail("ValueError", &m);
}

static int check_dtype(const te_select_kernel* kernel, int operand, DLDataType got, int as_bits,
                       int* pair) {
  uint8_t code = operand == COND ? (uint8_t)kDLBool : kernel->code;
  uint8_t bits = operand == COND ? 8 : kernel->bits;
  *pair = as_bits && bits == 128 && got.bits == 64;
  if (got.lanes == 1 && (got.bits == bits || *pair) && (as_bits || got.code == code)) return 0;
  message m = begin(kernel, operand);
  append(&m, "has DLPack type code %d, %d bits, %d lanes; expected ", got.code, got.bits, got.lanes);
  if (as_bits) {
    append(&m, "one lane of %d bits", bits);
  } else {
    append(&m, "code %d, %d bits, 1 lane", code, bits);
  }
  if (operand == COND && !as_bits) append(&m, " (boolean: pass cond != 0)");
  return fail("TypeError", &m);
}

static int check_compact(const te_select_kernel* kernel, int operand, const DLTensor* t) {
  if (!t->strides) return 0;
  int64_t stride = 1;
  for (int32_t i = t->ndim - 1; i >= 0; --i) {
    if (t->shape[i] != 1 && t->strides[i] != stride) {
      message m = begin(kernel, operand);
      append(&m, "has strides ");
      append_dims(&m, t->ndim, t->strides, NULL);
      append(&m, " for shape ");
      append_dims(&m, t->ndim, t->shape, NULL);
      append(&m, "; expected compact row-major memory");
      return fail("ValueError", &m);
    }
    stride *= t->shape[i];
  }
  return 0;
}

static int check_operand(const te_select_kernel* kernel, int operand, const TVMFFIAny* arg,
                         int as_bits, int64_t* sizes, memory* memory) {
  const DLTensor* t;
  if (arg->type_index == kTVMFFITensor) {
    t = (const DLTensor*)((const char*)arg->v_obj + sizeof(TVMFFIObject));
  } else if (arg->type_index == kTVMFFIDLTensorPtr && arg->v_ptr) {
    t = (const DLTensor*)arg->v_ptr;
  } else {
    message m = begin(kernel, operand);
    append(&m, "is not a tensor (tvm-ffi type index %d); expected a DLTensor* or an ffi::Tensor",
           arg->type_index);
    return fail("TypeError", &m);
  }
  DLDeviceType device = t->device.device_type;
  if (device != kDLCPU && device != kDLCUDAHost && device != kDLROCMHost) {
    message m = begin(kernel, operand);
    append(&m, "is on DLPack device (%d,%d); expected memory of the CPU", (int)device,
           (int)t->device.device_id);
    return fail("ValueError", &m);
  }
  if (t->ndim > 0 && !t->shape) {
    message m = begin(kernel, operand);
    append(&m, "has %d dims and a null shape pointer", t->ndim);
    return fail("ValueError", &m);
  }
  int pair;
  if (check_dtype(kernel, operand, t->dtype, as_bits, &pair)) return -1;
  if (check_shape(kernel, operand, t, pair, sizes, &memory->count)) return -1;
  memory->bytes = memory->count * (operand == COND ? 1 : kernel->bits / 8);
  memory->data = (char*)t->data + t->byte_offset;
  if (!memory->count) return 0;
  if (!t->data) {
    message m = begin(kernel, operand);
    append(&m, "has a null data pointer; expected %lld bytes", (long long)memory->bytes);
    return fail("ValueError", &m);
  }
  return check_compact(kernel, operand, t);
}

/* In place of then or else is safe: an output element is written after the same bytes were read, and
 * a kernel that selects an element twice finds the value it chose before. Cond has no such luck. An
 * input with out's element count has out's shape, up to axes of 1. */
static int check_overlap(const te_select_kernel* kernel, int operand, const memory* in,
                         const memory* out) {
  uintptr_t a = (uintptr_t)in->data, b = (uintptr_t)out->data;
  if (a + (uint64_t)in->bytes <= b || b + (uint64_t)out->bytes <= a || !in->bytes) return 0;
  if (a == b && in->count == out->count && operand != COND) return 0;
  message m = begin(kernel, OUT);
  append(&m, "overlaps %s; expected memory of its own, or exactly that of then or else_",
         operand_names[operand]);
  return fail("ValueError", &m);
}

int te_select_call(const te_select_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                   TVMFFIAny* result, int as_bits) {
  result->type_index = kTVMFFINone;
  result->zero_padding = 0;
  result->v_int64 = 0;
  if (num_args != TE_SELECT_OPERANDS) {
    message m;
    m.used = 0;
    append(&m, "%s: got %d arguments; expected 4: cond, then, else_, out", kernel->name, num_args);
    return fail("TypeError", &m);
  }
  int64_t sizes[TE_SELECT_MAX_NAMES];
  for (int32_t i = 0; i < kernel->num_names; ++i) sizes[i] = -1;
  memory operands[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (check_operand(kernel, i, &args[i], as_bits, sizes, &operands[i])) return -1;
  }
  const memory* out = &operands[OUT];
  if (!out->count) return 0;
  for (int i = 0; i < OUT; ++i) {
    if (check_overlap(kernel, i, &operands[i], out)) return -1;
  }

  if (kernel->bytes_per_thread > 0) { /* else there is no parallel loop */
    int64_t moved = operands[COND].bytes; /* each of the four is below 2^61, see check_shape */
    for (int i = THEN; i <= OUT; ++i) moved += operands[i].bytes;
    int64_t threads = moved / kernel->bytes_per_thread;
    te_select_set_threads(threads > INT32_MAX ? INT32_MAX : (int32_t)threads);
  }

  void* data[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) data[i] = operands[i].data;
  int64_t stream = kernel->stream_from > 0 && out->bytes >= kernel->stream_from;
  if (kernel->run(data, sizes, stream)) {
    message m;
    m.used = 0;
    append(&m, "%s: the kernel failed", kernel->name);
    return fail("RuntimeError", &m);
  }
  if (stream) te_select_fence();
  return 0;
}
