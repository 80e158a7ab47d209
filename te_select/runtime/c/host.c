/* The argument checks of the exported functions, the same for every kind of machine. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

#include "plain.h"

static const char* const operand_names[TE_SELECT_OPERANDS] = {"cond", "then", "else_", "out"};

/* ---- messages ------------------------------------------------------------------------------- */

void te_select_append(te_select_message* m, const char* format, ...) {
  if (m->mode == TE_SELECT_TRY) return;
  va_list args;
  va_start(args, format);
  int n = vsnprintf(m->text + m->used, sizeof(m->text) - m->used, format, args);
  va_end(args);
  if (n > 0) m->used += (size_t)n;
  if (m->used >= sizeof(m->text)) m->used = sizeof(m->text) - 1;
}

static void append_dims(te_select_message* m, int32_t ndim, const int64_t* dims,
                        const char* const* names) {
  te_select_append(m, "[");
  for (int32_t i = 0; i < ndim; ++i) {
    if (i) te_select_append(m, ",");
    if (i == TE_SELECT_MAX_DIMS) {
      te_select_append(m, "...");
      break;
    }
    if (names && dims[i] < 0) {
      te_select_append(m, "%s", names[-(dims[i] + 1)]);
    } else {
      te_select_append(m, "%lld", (long long)dims[i]);
    }
  }
  te_select_append(m, "]");
}

te_select_message te_select_begin(const te_select_kernel* kernel, te_select_mode mode,
                                  int operand) {
  te_select_message m;
  m.mode = mode == TE_SELECT_TRY ? TE_SELECT_STRICT : mode;
  m.used = 0;
  te_select_append(&m, "%s: ", kernel->name);
  if (operand >= 0) te_select_append(&m, "%s ", operand_names[operand]);
  return m;
}

void* te_select_tvm_ffi(const char* name) {
  void* library = dlopen("libtvm_ffi.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return dlsym(RTLD_DEFAULT, name); /* linked into the program itself */
  void* found = dlsym(library, name);
  dlclose(library); /* whoever calls this library has loaded it */
  return found;
}

/* The loader binds it with this library, unless tvm-ffi is loaded later. */
#pragma weak TVMFFIErrorSetRaisedFromCStr

int te_select_fail(const char* kind, const te_select_message* m) {
  if (m->mode == TE_SELECT_TRY) return -1;
  if (m->mode == TE_SELECT_PLAIN) {
    te_select_keep_error(kind, m->text);
    return -1;
  }
  __typeof__(&TVMFFIErrorSetRaisedFromCStr) set_raised = TVMFFIErrorSetRaisedFromCStr;
  if (!set_raised) {
    set_raised = (__typeof__(set_raised))te_select_tvm_ffi("TVMFFIErrorSetRaisedFromCStr");
  }
  if (set_raised) set_raised(kind, m->text);
  return -1;
}

/* A call, and how its arguments are taken. */
typedef struct {
  const te_select_kernel* kernel;
  te_select_mode mode;
} request;

static te_select_message begin(const request* r, int operand) {
  if (r->mode != TE_SELECT_TRY) return te_select_begin(r->kernel, r->mode, operand);
  te_select_message m;
  m.mode = TE_SELECT_TRY;
  return m;
}

/* ---- checks: 0, or -1 with an error raised -------------------------------------------------- */

static int check_shape(const request* r, int operand, const DLTensor* t, int pair, int64_t* sizes,
                       int64_t* count) {
  const te_select_shape* expected = &r->kernel->shapes[operand];
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
      te_select_message m = begin(r, operand);
      te_select_append(&m, "has too many elements: shape ");
      append_dims(&m, t->ndim, t->shape, NULL);
      te_select_append(&m, "; fewer than 2^57 are supported");
      return te_select_fail("ValueError", &m);
    }
  }
  *count = empty ? 0 : n;
  return 0;

mismatch:;
  te_select_message m = begin(r, operand);
  te_select_append(&m, "has shape ");
  append_dims(&m, t->ndim, t->shape, NULL);
  te_select_append(&m, "; expected ");
  append_dims(&m, ndim, expected->dims, r->kernel->names);
  if (pair) te_select_append(&m, " and a last axis of 2");
  if (t->ndim == ndim + pair && i < ndim && expected->dims[i] < 0 && t->shape[i] >= 0) {
    int64_t name = -(expected->dims[i] + 1);
    te_select_append(&m, " with %s = %lld as in an earlier argument or axis",
                     r->kernel->names[name], (long long)sizes[name]);
  }
  return te_select_fail("ValueError", &m);
}

static int check_dtype(const request* r, int operand, DLDataType got, int* pair) {
  uint8_t code = operand == TE_SELECT_COND ? (uint8_t)kDLBool : r->kernel->code;
  uint8_t bits = operand == TE_SELECT_COND ? 8 : r->kernel->bits;
  int as_bits = r->mode == TE_SELECT_BITS;
  *pair = as_bits && bits == 128 && got.bits == 64;
  if (got.lanes == 1 && (got.bits == bits || *pair) && (as_bits || got.code == code)) return 0;
  te_select_message m = begin(r, operand);
  te_select_append(&m, "has DLPack type code %d, %d bits, %d lanes; expected ", got.code, got.bits,
                   got.lanes);
  if (as_bits) {
    te_select_append(&m, "one lane of %d bits", bits);
  } else {
    te_select_append(&m, "code %d, %d bits, 1 lane", code, bits);
  }
  if (operand == TE_SELECT_COND && !as_bits) te_select_append(&m, " (boolean: pass cond != 0)");
  return te_select_fail("TypeError", &m);
}

static int check_compact(const request* r, int operand, const DLTensor* t) {
  if (!t->strides) return 0;
  int64_t stride = 1;
  for (int32_t i = t->ndim - 1; i >= 0; --i) {
    if (t->shape[i] != 1 && t->strides[i] != stride) {
      te_select_message m = begin(r, operand);
      te_select_append(&m, "has strides ");
      append_dims(&m, t->ndim, t->strides, NULL);
      te_select_append(&m, " for shape ");
      append_dims(&m, t->ndim, t->shape, NULL);
      te_select_append(&m, "; expected compact row-major memory");
      return te_select_fail("ValueError", &m);
    }
    stride *= t->shape[i];
  }
  return 0;
}

static int check_device(const request* r, int operand, const DLTensor* t, int32_t* number) {
  DLDeviceType type = t->device.device_type;
  const te_select_device* device = r->kernel->device;
  if (device && (type == device->types[0] || type == device->types[1])) {
    *number = t->device.device_id;
    return 0;
  }
  *number = TE_SELECT_HOST;
  int on_cpu = type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost;
  int is_value = operand != TE_SELECT_OUT && r->kernel->shapes[operand].ndim == 0;
  if (on_cpu && (!device || is_value)) return 0;
  te_select_message m = begin(r, operand);
  te_select_append(&m, "is on DLPack device (%d,%d); expected memory of %s", (int)type,
                   (int)t->device.device_id, device ? device->name : "the CPU");
  return te_select_fail("ValueError", &m);
}

/* In C, a pointer to elements must be aligned as they are, of a complex number as its two parts. The
 * kernels could do without. */
static int check_alignment(const request* r, int operand, uint64_t address) {
  int width = operand == TE_SELECT_COND ? 1 : r->kernel->bits / 8;
  if (operand != TE_SELECT_COND && r->kernel->code == kDLComplex) width /= 2;
  if (!(address % (uint64_t)width)) return 0;
  te_select_message m = begin(r, operand);
  te_select_append(&m, "begins at 0x%llx; expected an address divisible by %d",
                   (unsigned long long)address, width);
  return te_select_fail("ValueError", &m);
}

static int check_operand(const request* r, int operand, const TVMFFIAny* arg, int64_t* sizes,
                         te_select_memory* memory) {
  const DLTensor* t = te_select_tensor_of(arg);
  if (!t) {
    te_select_message m = begin(r, operand);
    te_select_append(
        &m, "is not a tensor (tvm-ffi type index %d); expected a DLTensor* or an ffi::Tensor",
        arg->type_index);
    return te_select_fail("TypeError", &m);
  }
  if (check_device(r, operand, t, &memory->device)) return -1;
  if (t->ndim < 0 || t->ndim > TE_SELECT_MAX_DIMS + 1 || (t->ndim > 0 && !t->shape)) {
    te_select_message m = begin(r, operand);
    te_select_append(&m, "has %d dims%s; expected %d", t->ndim,
                     t->shape ? "" : " and a null shape pointer", r->kernel->shapes[operand].ndim);
    return te_select_fail("ValueError", &m);
  }
  int pair;
  if (check_dtype(r, operand, t->dtype, &pair)) return -1;
  if (check_shape(r, operand, t, pair, sizes, &memory->count)) return -1;
  memory->bytes = memory->count * (operand == TE_SELECT_COND ? 1 : r->kernel->bits / 8);
  memory->data = NULL;
  if (!memory->count) return 0;
  if (!t->data) {
    te_select_message m = begin(r, operand);
    te_select_append(&m, "has a null data pointer; expected %lld bytes", (long long)memory->bytes);
    return te_select_fail("ValueError", &m);
  }
  uint64_t first, end;
  if (__builtin_add_overflow((uint64_t)(uintptr_t)t->data, t->byte_offset, &first) ||
      __builtin_add_overflow(first, (uint64_t)memory->bytes, &end)) {
    te_select_message m = begin(r, operand);
    te_select_append(&m, "has byte_offset %llu, which leads out of the address space",
                     (unsigned long long)t->byte_offset);
    return te_select_fail("ValueError", &m);
  }
  memory->data = (char*)(uintptr_t)first;
  if (r->mode == TE_SELECT_PLAIN && check_alignment(r, operand, first)) return -1;
  return check_compact(r, operand, t);
}

/* out may be then or else itself: an output element is written after the same bytes were read, and
 * a kernel that selects an element twice finds the value that it chose before. out may not be cond.
 * An input with out's element count has out's shape, up to axes of 1. */
static int check_overlap(const request* r, int operand, const te_select_memory* in,
                         const te_select_memory* out) {
  uintptr_t a = (uintptr_t)in->data, b = (uintptr_t)out->data; /* neither reaches past the end */
  if (a + (uint64_t)in->bytes <= b || b + (uint64_t)out->bytes <= a || !in->bytes) return 0;
  if (a == b && in->count == out->count && operand != TE_SELECT_COND) return 0;
  te_select_message m = begin(r, TE_SELECT_OUT);
  te_select_append(&m, "overlaps %s; expected memory of its own, or exactly that of then or else_",
                   operand_names[operand]);
  return te_select_fail("ValueError", &m);
}

int te_select_check(const te_select_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                    TVMFFIAny* result, te_select_mode mode, int64_t* sizes,
                    te_select_memory* operands) {
  const request r = {kernel, mode};
  *result = (TVMFFIAny){.type_index = kTVMFFINone};
  if (num_args != TE_SELECT_OPERANDS) {
    te_select_message m = begin(&r, -1);
    te_select_append(&m, "got %d arguments; expected 4: cond, then, else_, out", num_args);
    return te_select_fail("TypeError", &m);
  }
  for (int32_t i = 0; i < kernel->num_names; ++i) sizes[i] = -1;
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (check_operand(&r, i, &args[i], sizes, &operands[i])) return -1;
  }
  for (int i = 0; i < TE_SELECT_OUT && operands[TE_SELECT_OUT].count; ++i) {
    if (check_overlap(&r, i, &operands[i], &operands[TE_SELECT_OUT])) return -1;
  }
  if (mode == TE_SELECT_TRY) *result = (TVMFFIAny){.type_index = kTVMFFIBool, .v_int64 = 1};
  return operands[TE_SELECT_OUT].count > 0;
}

/* The address of the manifest's text; after loading, its digest is compared. */
TE_SELECT_EXPORT(te_select_manifest) {
  te_select_return_int(result, (int64_t)(uintptr_t)te_select_manifest_text);
  return 0;
}
