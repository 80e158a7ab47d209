/* The argument checks of the exported functions, the same for every kind of machine. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "overlap.h"
#include "status.h"

static const char* const operand_names[TE_SELECT_OPERANDS] = {"cond", "then", "else_", "out"};

/* ---- messages ------------------------------------------------------------------------------- */

enum { MESSAGE_BYTES = 1024 };

__attribute__((format(printf, 2, 3), cold)) static void append(char* text, const char* format,
                                                               ...) {
  va_list args;
  va_start(args, format);
  size_t used = strlen(text);
  vsnprintf(text + used, MESSAGE_BYTES - used, format, args);
  va_end(args);
}

__attribute__((cold)) static void append_dims(char* text, int32_t ndim, const int64_t* dims,
                                              const char* const* names) {
  append(text, "[");
  for (int32_t i = 0; i < ndim; ++i) {
    if (i) append(text, ",");
    if (i == TE_SELECT_MAX_DIMS) {
      append(text, "...");
      break;
    }
    if (names && dims[i] < 0) {
      append(text, "%s", names[-(dims[i] + 1)]);
    } else {
      append(text, "%lld", (long long)dims[i]);
    }
  }
  append(text, "]");
}

void* te_select_tvm_ffi(const char* name) {
  void* library = dlopen("libtvm_ffi.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return dlsym(RTLD_DEFAULT, name); /* linked into the program itself */
  void* found = dlsym(library, name);
  dlclose(library); /* whoever calls this library has loaded it */
  return found;
}

/* One in a program, whichever of its libraries and archives a function comes from: all have this
 * name, and the linker takes the first. The size is part of the name. */
extern _Thread_local char te_select_error_v1[MESSAGE_BYTES];
__attribute__((weak, visibility("default"))) _Thread_local char te_select_error_v1[MESSAGE_BYTES];

static _Thread_local te_select_status status;

__attribute__((weak, visibility("default"))) const char* te_select_error(void) {
  return te_select_error_v1;
}

__attribute__((cold)) static void keep_error(const char* kind, const char* text) {
  status = strcmp(kind, "RuntimeError") ? TE_SELECT_INVALID_ARGUMENT : TE_SELECT_CANNOT_RUN;
  snprintf(te_select_error_v1, MESSAGE_BYTES, "%s", text);
}

int te_select_status_of(int returned) { return returned ? (int)status : (int)TE_SELECT_OK; }

/* The loader binds it with this library, unless tvm-ffi is loaded later. */
#pragma weak TVMFFIErrorSetRaisedFromCStr

int te_select_fail(const te_select_request* r, int operand, const char* kind, const char* format,
                   ...) {
  if (r->mode == TE_SELECT_TRY) return -1;
  char text[MESSAGE_BYTES] = "";
  if (r->kernel) append(text, "%s: ", r->kernel->name);
  if (operand >= 0) append(text, "%s ", (r->names ? r->names : operand_names)[operand]);
  va_list args;
  va_start(args, format);
  size_t used = strlen(text);
  vsnprintf(text + used, sizeof(text) - used, format, args);
  va_end(args);
  if (r->mode == TE_SELECT_PLAIN) {
    keep_error(kind, text);
    return -1;
  }
  __typeof__(&TVMFFIErrorSetRaisedFromCStr) set_raised = TVMFFIErrorSetRaisedFromCStr;
  if (!set_raised) {
    set_raised = (__typeof__(set_raised))te_select_tvm_ffi("TVMFFIErrorSetRaisedFromCStr");
  }
  if (set_raised) set_raised(kind, text);
  return -1;
}

/* ---- checks: 0, or -1 with an error raised -------------------------------------------------- */

/* `first_wrong`: the first axis that is another than expected. */
__attribute__((cold, noinline)) static int refuse_shape(const te_select_request* r, int operand,
                                                        const DLTensor* t, int pair,
                                                        int32_t first_wrong, const int64_t* sizes) {
  if (r->mode == TE_SELECT_TRY) return -1; /* nobody will read it */
  const te_select_shape* expected = &r->kernel->shapes[operand];
  const char* const* names = r->kernel->names;
  char given[MESSAGE_BYTES] = "", wanted[MESSAGE_BYTES] = "";
  append_dims(given, t->ndim, t->shape, NULL);
  append_dims(wanted, expected->ndim, expected->dims, names);
  if (pair) append(wanted, " and a last axis of 2");
  if (t->ndim == expected->ndim + pair && first_wrong < expected->ndim) {
    int64_t want = expected->dims[first_wrong];
    if (want < 0 && t->shape[first_wrong] >= 0) {
      append(wanted, " with %s = %lld as in an earlier argument or axis", names[-(want + 1)],
             (long long)sizes[-(want + 1)]);
    }
  }
  return te_select_fail(r, operand, "ValueError", "has shape %s; expected %s", given, wanted);
}

/* `strides`: NULL if there are too many elements. */
__attribute__((cold, noinline)) static int refuse_memory(const te_select_request* r, int operand,
                                                         const DLTensor* t,
                                                         const int64_t* strides) {
  if (r->mode == TE_SELECT_TRY) return -1;
  char shape[MESSAGE_BYTES] = "", given[MESSAGE_BYTES] = "";
  append_dims(shape, t->ndim, t->shape, NULL);
  if (!strides) {
    return te_select_fail(r, operand, "ValueError",
                          "has too many elements: shape %s; fewer than 2^57 are supported", shape);
  }
  append_dims(given, t->ndim, strides, NULL);
  return te_select_fail(r, operand, "ValueError",
                        "has strides %s for shape %s; expected C-contiguous memory", given, shape);
}

static int check_shape(const te_select_request* r, int operand, const DLTensor* t, int pair,
                       int64_t* sizes, int64_t* count) {
  const te_select_shape* expected = &r->kernel->shapes[operand];
  int32_t ndim = expected->ndim;
  int64_t n = 1;
  int empty = 0;
  if (t->ndim != ndim + pair || (pair && t->shape[ndim] != 2)) {
    return refuse_shape(r, operand, t, pair, ndim, sizes);
  }
  for (int32_t i = 0; i < ndim; ++i) {
    int64_t extent = t->shape[i];
    int64_t want = expected->dims[i];
    if (want < 0) {
      int64_t* size = &sizes[-(want + 1)];
      if (*size < 0) *size = extent;
      want = *size;
    }
    if (extent != want || extent < 0) return refuse_shape(r, operand, t, pair, i, sizes);
    if (extent == 0) {
      empty = 1;
    } else if (__builtin_mul_overflow(n, extent, &n) || n > INT64_MAX / 64) {
      return refuse_memory(r, operand, t, NULL);
    }
  }
  *count = empty ? 0 : n;
  return 0;
}

static int check_dtype(const te_select_request* r, int operand, DLDataType got, int* pair) {
  uint8_t code = operand == TE_SELECT_COND ? (uint8_t)kDLBool : r->kernel->code;
  uint8_t bits = operand == TE_SELECT_COND ? 8 : r->kernel->bits;
  int as_bits = r->mode == TE_SELECT_BITS;
  *pair = as_bits && bits == 128 && got.bits == 64;
  if (got.lanes == 1 && (got.bits == bits || *pair) && (as_bits || got.code == code)) return 0;
  if (as_bits) {
    return te_select_fail(
        r, operand, "TypeError",
        "has DLPack type code %d, %d bits, %d lanes; expected one lane of %d bits", got.code,
        got.bits, got.lanes, bits);
  }
  return te_select_fail(
      r, operand, "TypeError",
      "has DLPack type code %d, %d bits, %d lanes; expected code %d, %d bits, 1 lane%s", got.code,
      got.bits, got.lanes, code, bits,
      operand == TE_SELECT_COND ? " (boolean: pass cond != 0)" : "");
}

static int check_compact(const te_select_request* r, int operand, const DLTensor* t) {
  if (!t->strides) return 0;
  int64_t stride = 1;
  for (int32_t i = t->ndim - 1; i >= 0; --i) {
    if (t->shape[i] != 1 && t->strides[i] != stride)
      return refuse_memory(r, operand, t, t->strides);
    stride *= t->shape[i];
  }
  return 0;
}

static int check_device(const te_select_request* r, int operand, const DLTensor* t,
                        int32_t* number) {
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
  return te_select_fail(r, operand, "ValueError",
                        "is on DLPack device (%d,%d); expected memory of %s", (int)type,
                        (int)t->device.device_id, device ? device->name : "the CPU");
}

/* In C, a pointer to elements must be aligned as they are, of a complex number as its two parts. The
 * kernels could do without. */
static int check_alignment(const te_select_request* r, int operand, uint64_t address) {
  int width = operand == TE_SELECT_COND ? 1 : r->kernel->bits / 8;
  if (operand != TE_SELECT_COND && r->kernel->code == kDLComplex) width /= 2;
  if (!(address % (uint64_t)width)) return 0;
  return te_select_fail(r, operand, "ValueError",
                        "begins at 0x%llx; expected an address divisible by %d",
                        (unsigned long long)address, width);
}

static int check_operand(const te_select_request* r, int operand, const TVMFFIAny* arg,
                         int64_t* sizes, te_select_memory* memory) {
  const DLTensor* t = te_select_tensor_of(arg);
  if (!t) {
    return te_select_fail(
        r, operand, "TypeError",
        "is not a tensor (tvm-ffi type index %d); expected a DLTensor* or an ffi::Tensor",
        arg->type_index);
  }
  if (check_device(r, operand, t, &memory->device)) return -1;
  if (t->ndim < 0 || t->ndim > TE_SELECT_MAX_DIMS + 1 || (t->ndim > 0 && !t->shape)) {
    return te_select_fail(r, operand, "ValueError", "has %d dims%s; expected %d", t->ndim,
                          t->shape ? "" : " and a null shape pointer",
                          r->kernel->shapes[operand].ndim);
  }
  int pair;
  if (check_dtype(r, operand, t->dtype, &pair)) return -1;
  if (check_shape(r, operand, t, pair, sizes, &memory->count)) return -1;
  memory->bytes = memory->count * (operand == TE_SELECT_COND ? 1 : r->kernel->bits / 8);
  memory->data = NULL;
  if (!memory->count) return 0;
  if (!t->data) {
    return te_select_fail(r, operand, "ValueError", "has a null data pointer; expected %lld bytes",
                          (long long)memory->bytes);
  }
  uint64_t first, end;
  if (__builtin_add_overflow((uint64_t)(uintptr_t)t->data, t->byte_offset, &first) ||
      __builtin_add_overflow(first, (uint64_t)memory->bytes, &end)) {
    return te_select_fail(r, operand, "ValueError",
                          "has byte_offset %llu, which leads out of the address space",
                          (unsigned long long)t->byte_offset);
  }
  memory->data = (char*)(uintptr_t)first;
  if (r->mode == TE_SELECT_PLAIN && check_alignment(r, operand, first)) return -1;
  return check_compact(r, operand, t);
}

static te_select_extent extent_of(const te_select_memory* memory) {
  uintptr_t first = (uintptr_t)memory->data;
  return (te_select_extent){first, first + (uintptr_t)memory->bytes};
}

/* A kernel that selects an element twice finds its first choice. An input with out's element count has
 * out's shape, up to axes of 1. Memory does not reach past the end of the address space. */
static int check_overlap(const te_select_request* r, int operand, const te_select_memory* in,
                         const te_select_memory* out) {
  int is_out = in->data == out->data && in->count == out->count && operand != TE_SELECT_COND;
  if (!in->bytes || te_select_may_share(extent_of(in), extent_of(out), is_out)) return 0;
  return te_select_fail(r, TE_SELECT_OUT, "ValueError",
                        "overlaps %s; expected memory of its own, or exactly that of then or else_",
                        operand_names[operand]);
}

int te_select_check(const te_select_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                    TVMFFIAny* result, te_select_mode mode, int64_t* sizes,
                    te_select_memory* operands) {
  const te_select_request r = {.kernel = kernel, .mode = mode};
  *result = (TVMFFIAny){.type_index = kTVMFFINone};
  if (num_args != TE_SELECT_OPERANDS) {
    return te_select_fail(&r, -1, "TypeError",
                          "got %d arguments; expected 4: cond, then, else_, out", num_args);
  }
  for (int32_t i = 0; i < kernel->num_names; ++i) sizes[i] = -1;
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (check_operand(&r, i, &args[i], sizes, &operands[i])) return -1;
  }
  for (int i = 0; i < TE_SELECT_OUT && operands[TE_SELECT_OUT].count; ++i) {
    if (check_overlap(&r, i, &operands[i], &operands[TE_SELECT_OUT])) return -1;
  }
  if (mode != TE_SELECT_STRICT) *result = (TVMFFIAny){.type_index = kTVMFFIBool, .v_int64 = 1};
  return operands[TE_SELECT_OUT].count > 0;
}

/* The address of the manifest's text; after loading, its digest is compared. */
TE_SELECT_EXPORT(te_select_manifest) {
  te_select_return_int(result, (int64_t)(uintptr_t)te_select_manifest_text);
  return 0;
}
