/* The exports of a library of the family: its kernels, and a function for tensors of any shapes. */
#include "where_library.h"

#include <string.h>

#include "first_use.h"
#include "where_plan.h"

static te_select_where_kernels own, all;

const char* te_select_where_refusal(void) {
  const te_select_findings* here = te_select_here();
  return here->refused ? here->refusal : NULL;
}

int32_t te_select_where_run_on(const te_select_where_call* call,
                               const te_select_pool_of_caller* pool) {
  const te_select_findings* here = te_select_here();
  if (here->refused) return TE_SELECT_WHERE_REFUSED;
  return te_select_where_walk(&all, &here->machine, call, pool);
}

static int32_t call_any(const te_select_where_call* call) {
  return te_select_where_run_on(call, NULL);
}

__attribute__((visibility("default"))) int32_t te_select_where_call_on(
    const te_select_where_call* call, te_select_parallel_for run, void* pool, int32_t threads) {
  if (!te_select_where_is_sound(call)) return TE_SELECT_WHERE_UNSOUND;
  const te_select_pool_of_caller on = {run, pool, threads};
  return te_select_where_run_on(call, run ? &on : NULL);
}

static void add_one(te_select_where_run* to, const te_select_where_run* from) {
  te_select_where_run kernel = te_select_kernel_at(from);
  if (kernel && !te_select_kernel_at(to)) te_select_put_kernel(to, kernel);
}

static void add(const te_select_where_library* other) {
  for (int w = 0; w < TE_SELECT_WIDTHS; ++w) {
    for (int i = 0; i < TE_SELECT_ROWS; ++i) {
      add_one(&all.rows[w][i], &other->kernels->rows[w][i]);
    }
    for (int i = 0; i < TE_SELECT_RUNS; ++i) {
      add_one(&all.runs[w][i], &other->kernels->runs[w][i]);
    }
  }
}

static const te_select_where_library library = {.version = TE_SELECT_WHERE_VERSION,
                                                .call = call_any,
                                                .refusal = te_select_where_refusal,
                                                .add = add,
                                                .kernels = &own};

void te_select_where_take_level(int32_t level) {
  te_select_where_fill(&own, level);
  add(&library);
}

/* ---- for tvm-ffi -------------------------------------------------------------------------------- */

/* The address of the te_select_where_library, whose kernels are there. */
TE_SELECT_EXPORT(te_select_where_library) {
  te_select_here();
  te_select_return_int(result, (int64_t)(uintptr_t)&library);
  return 0;
}

__attribute__((cold)) static int refuse(const char* kind, const char* format, const char* name) {
  te_select_message m = {.mode = TE_SELECT_STRICT};
  te_select_append(&m, format, name);
  return te_select_fail(kind, &m);
}

static const char* const names[] = {"cond", "x", "y", "out"};

static const int64_t MOST_BYTES = INT64_C(1) << 56; /* products with strides stay an int64 */

static int check(const DLTensor* t, int operand, DLDataType type) {
  const char* name = names[operand];
  DLDeviceType device = t->device.device_type;
  if (device != kDLCPU && device != kDLCUDAHost && device != kDLROCMHost) {
    return refuse("ValueError", "where: %s is not in memory of the CPU", name);
  }
  if (t->ndim < 0 || t->ndim > TE_SELECT_WHERE_RANK || (t->ndim && !t->shape)) {
    return refuse("ValueError", "where: %s has more than 64 dims", name);
  }
  int fits = operand == TE_SELECT_COND ? t->dtype.bits == 8 && t->dtype.code == kDLBool
                                       : t->dtype.bits == type.bits && t->dtype.code == type.code;
  if (!fits || t->dtype.lanes != 1 || t->dtype.bits % 8 || !t->dtype.bits || t->dtype.bits > 128) {
    return refuse("TypeError", "where: %s has another element type than out, or cond is no boolean",
                  name);
  }
  int empty = 0;
  int64_t bytes = t->dtype.bits / 8, item = bytes, reach;
  for (int32_t i = 0; i < t->ndim; ++i) {
    int64_t dim = t->shape[i];
    if (dim < 0) return refuse("ValueError", "where: %s has a negative dim", name);
    empty |= dim == 0;
    if (dim < 2) continue;
    if (__builtin_mul_overflow(bytes, dim, &bytes) || bytes > MOST_BYTES ||
        __builtin_mul_overflow(t->strides ? t->strides[i] : 0, dim * item, &reach) ||
        reach > MOST_BYTES || reach < -MOST_BYTES) {
      return refuse("ValueError", "where: %s has more elements than any memory", name);
    }
  }
  if (!t->data && !empty) return refuse("ValueError", "where: %s has no memory", name);
  return 0;
}

/* Strides in bytes. A tensor without strides is compact. */
static void strides_of(const DLTensor* t, int64_t* strides) {
  int64_t item = t->dtype.bits / 8, compact = item;
  for (int32_t i = t->ndim - 1; i >= 0; --i) {
    int64_t dim = t->shape[i];
    strides[i] = dim < 2 ? 0 : t->strides ? t->strides[i] * item : compact;
    if (dim > 1) compact *= dim;
  }
}

/* Whether an element of this type holds a whole number. */
static int holds(DLDataType type, int64_t value) {
  if (type.code == kDLBool) return value == 0 || value == 1;
  if (type.code == kDLInt) {
    return type.bits == 64 || (value >> (type.bits - 1)) == (value < 0 ? -1 : 0);
  }
  return value >= 0 && (type.bits == 64 || value >> type.bits == 0);
}

/* Writes a number as an element of out. Returns 0 if this function does not convert it. */
static int to_element(const TVMFFIAny* arg, DLDataType type, char* element) {
  if (type.bits > 64) return 0;
  if (arg->type_index == kTVMFFIFloat && type.code == kDLFloat && type.bits >= 32) {
    float narrow = (float)arg->v_float64;
    memcpy(element, type.bits == 32 ? (void*)&narrow : (void*)&arg->v_float64, type.bits / 8);
    return 1;
  }
  if (arg->type_index != kTVMFFIInt && arg->type_index != kTVMFFIBool) return 0;
  if (type.code == kDLFloat && type.bits >= 32) {
    double wide = (double)arg->v_int64;
    float narrow = (float)arg->v_int64;
    memcpy(element, type.bits == 32 ? (void*)&narrow : (void*)&wide, type.bits / 8);
    return 1;
  }
  if (type.code != kDLInt && type.code != kDLUInt && type.code != kDLBool) return 0;
  if (!holds(type, arg->v_int64)) return 0;
  memcpy(element, &arg->v_int64, type.bits / 8); /* little-endian: the low bytes */
  return 1;
}

/* Whether some input has every axis of out, with its extent: out is then what they broadcast to. */
static int is_joined(const DLTensor* out, const DLTensor* const* inputs) {
  for (int32_t back = 1; back <= out->ndim; ++back) {
    int found = 0;
    for (int i = 0; i < TE_SELECT_OUT && !found; ++i) {
      const DLTensor* t = inputs[i];
      found = t && back <= t->ndim && t->shape[t->ndim - back] == out->shape[out->ndim - back];
    }
    if (!found) return 0;
  }
  return 1;
}

/* Selects: the arguments are cond, x, y and out, of any shapes that broadcast to the shape of out.
 * x and y may be numbers. The result is one of the results in where.h. If out overlaps an input,
 * the call is refused, unless out has the address and the strides of x or y. */
TE_SELECT_EXPORT(te_select_where) {
  te_select_return_int(result, 0);
  if (num_args != TE_SELECT_OPERANDS) {
    return refuse("TypeError", "where: expected cond, x, y, %s", names[TE_SELECT_OUT]);
  }
  const DLTensor* out = te_select_tensor_of(&args[TE_SELECT_OUT]);
  if (!out) return refuse("TypeError", "where: %s is not a tensor", names[TE_SELECT_OUT]);
  if (check(out, TE_SELECT_OUT, out->dtype)) return -1;
  te_select_where_call call;
  char elements[TE_SELECT_OPERANDS][16];
  const DLTensor* inputs[TE_SELECT_OUT];
  call.ndim = out->ndim;
  call.width = out->dtype.bits / 8;
  for (int32_t i = 0; i < out->ndim; ++i) call.shape[i] = out->shape[i];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    const DLTensor* t = te_select_tensor_of(&args[i]);
    if (i != TE_SELECT_OUT) inputs[i] = t;
    int64_t strides[TE_SELECT_WHERE_RANK];
    if (!t) {
      if (i == TE_SELECT_COND || !to_element(&args[i], out->dtype, elements[i])) {
        return refuse("TypeError", "where: %s is no tensor, and no number that out's type holds",
                      names[i]);
      }
      call.data[i] = elements[i];
      te_select_broadcast(&call, i, 0, NULL, NULL);
      continue;
    }
    if (check(t, i, out->dtype)) return -1;
    strides_of(t, strides);
    call.data[i] = (char*)((uintptr_t)t->data + t->byte_offset); /* NULL if it is empty */
    if (!te_select_broadcast(&call, i, t->ndim, t->shape, strides)) {
      return refuse("ValueError", "where: %s does not broadcast to out", names[i]);
    }
  }
  if (!is_joined(out, inputs)) {
    return refuse("ValueError", "where: %s is larger than what the inputs broadcast to",
                  names[TE_SELECT_OUT]);
  }
  if (te_select_where_overlaps(&call)) {
    return refuse("ValueError", "where: %s overlaps an input", names[TE_SELECT_OUT]);
  }
  int32_t outcome = call_any(&call);
  if (outcome == TE_SELECT_WHERE_REFUSED)
    return refuse("RuntimeError", "where: %s", te_select_where_refusal());
  if (outcome == TE_SELECT_WHERE_FAILED) {
    return refuse("RuntimeError", "where: there is no memory for tiles of %s, or a kernel failed",
                  names[TE_SELECT_OUT]);
  }
  te_select_return_int(result, outcome);
  return 0;
}
