/* The exports of a library of the family: its kernels, and a function for tensors of any shapes. */
#include "where_library.h"

#include <stdlib.h>

#include "first_use.h"
#include "where_plan.h"

static te_select_where_kernels own, all;
static te_select_where_stages own_stages, all_stages;

static const char* refusal(void) {
  const te_select_findings* here = te_select_here();
  return here->refused ? here->refusal : NULL;
}

static int32_t run_on(const te_select_where_call* call, const te_select_pool_of_caller* pool,
                      te_select_where_plan* plan) {
  const te_select_findings* here = te_select_here();
  if (here->refused) return TE_SELECT_WHERE_REFUSED;
  return te_select_where_walk(&all, &here->machine, call, NULL, pool, plan);
}

static int32_t call_any(const te_select_where_call* call, te_select_where_plan* plan) {
  return run_on(call, NULL, plan);
}

/* Finds the stages of a call's inputs. Returns 0 if one is not there. */
static int find_stages(const te_select_where_sources* sources,
                       te_select_stage stages[TE_SELECT_INPUTS]) {
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
    int32_t kind = sources->kinds[i];
    stages[i] = (te_select_stage){0};
    if (kind == TE_SELECT_AS_IS) continue;
    int32_t target = i == TE_SELECT_COND ? TE_SELECT_KIND_BOOL : sources->out_kind;
    stages[i].make = te_select_kernel_at(&all_stages.of[kind][target]);
    stages[i].item = te_select_item_of_kind(kind);
    stages[i].flags = sources->flags;
    stages[i].bits = kind == TE_SELECT_KIND_BITS ? sources->bits : NULL;
    if (!stages[i].make) return 0;
  }
  return 1;
}

static int32_t call_staged(const te_select_where_call* call, const te_select_where_sources* sources,
                           te_select_where_plan* plan) {
  const te_select_findings* here = te_select_here();
  te_select_stage stages[TE_SELECT_INPUTS];
  if (here->refused) return TE_SELECT_WHERE_REFUSED;
  if (!find_stages(sources, stages)) return TE_SELECT_WHERE_NO_KERNEL;
  char elements[TE_SELECT_INPUTS][16], *memory[TE_SELECT_INPUTS] = {NULL};
  te_select_where_call made = *call;
  int32_t result = TE_SELECT_WHERE_DONE;
  for (int i = 0; i < TE_SELECT_INPUTS && result >= 0; ++i) {
    int64_t most = here->machine.l2 / 2; /* it is read again and again */
    if (te_select_make_once(&made, &stages[i], i, most, elements[i], &memory[i]))
      result = TE_SELECT_WHERE_FAILED;
  }
  if (result >= 0) result = te_select_where_walk(&all, &here->machine, &made, stages, NULL, plan);
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) free(memory[i]);
  return result;
}

static int32_t run_chain(const te_select_where_chain* chain) {
  const te_select_findings* here = te_select_here();
  return here->refused ? TE_SELECT_WHERE_REFUSED : te_select_run_chain(&all, &here->machine, chain);
}

__attribute__((visibility("default"))) int32_t te_select_where_call_on(
    const te_select_where_call* call, te_select_parallel_for run, void* pool, int32_t threads) {
  if (!te_select_where_is_sound(call)) return TE_SELECT_WHERE_UNSOUND;
  const te_select_pool_of_caller on = {run, pool, threads};
  return run_on(call, run ? &on : NULL, NULL);
}

const char* te_select_where_why(int32_t result) {
  return result == TE_SELECT_WHERE_REFUSED     ? te_select_here()->refusal
         : result == TE_SELECT_WHERE_NO_KERNEL ? "the library has no kernel for this element type"
         : result == TE_SELECT_WHERE_UNSOUND
             ? "out overlaps an input"
             : "there is no memory for tiles of out, or a kernel failed";
}

static void add_one(te_select_where_run* to, const te_select_where_run* from) {
  te_select_where_run kernel = te_select_kernel_at(from);
  if (kernel && !te_select_kernel_at(to)) te_select_put_kernel(to, kernel);
}

static void add_kernels(const te_select_where_library* other) {
  for (int w = 0; w < TE_SELECT_WIDTHS; ++w) {
    for (int i = 0; i < TE_SELECT_ROWS; ++i) {
      add_one(&all.rows[w][i], &other->kernels->rows[w][i]);
    }
    for (int i = 0; i < TE_SELECT_RUNS; ++i) {
      add_one(&all.runs[w][i], &other->kernels->runs[w][i]);
    }
  }
  for (int k = 0; k < TE_SELECT_SOURCES && other->version == TE_SELECT_WHERE_VERSION; ++k) {
    for (int i = 0; i < TE_SELECT_KINDS; ++i)
      add_one(&all_stages.of[k][i], &other->stages->of[k][i]);
  }
}

static const te_select_where_library library = {.version = TE_SELECT_WHERE_VERSION,
                                                .call = call_any,
                                                .chain = run_chain,
                                                .refusal = refusal,
                                                .add = add_kernels,
                                                .kernels = &own,
                                                .staged = call_staged,
                                                .stages = &own_stages};

void te_select_where_take_level(int32_t level) {
  te_select_where_fill(&own, &own_stages, level);
  add_kernels(&library);
}

/* ---- for tvm-ffi -------------------------------------------------------------------------------- */

/* The address of the te_select_where_library, whose kernels are there. */
TE_SELECT_EXPORT(te_select_where_library) {
  te_select_here();
  te_select_return_int(result, (int64_t)(uintptr_t)&library);
  return 0;
}

static const te_select_kernel any_shapes = {.name = "where"};
static const char* const names[] = {"cond", "x", "y", "out"};
static const te_select_request where = {&any_shapes, TE_SELECT_STRICT, names};

/* The kind of an element type; TE_SELECT_AS_IS if it has none. */
static int32_t kind_of(DLDataType type) {
  static const char letters[] = {
      [kDLInt] = 'i', [kDLUInt] = 'u', [kDLFloat] = 'f', [kDLComplex] = 'c', [kDLBool] = 'b'};
  if (type.code >= sizeof(letters) || type.bits % 8 || type.lanes != 1) return TE_SELECT_AS_IS;
  return te_select_kind_by(letters[type.code], type.bits / 8);
}

/* The kind of a side that is converted to out's type; TE_SELECT_AS_IS if it is not. A float16 is not:
 * what becomes of a signalling NaN differs by the library whose tensor it is. */
static int32_t kind_of_side(DLDataType side, DLDataType type) {
  int32_t kind = kind_of(side), target = kind_of(type);
  int is_same = side.code == type.code && side.bits == type.bits;
  if (is_same || kind == TE_SELECT_AS_IS || kind == TE_SELECT_KIND_FLOAT16 ||
      target == TE_SELECT_AS_IS || target == TE_SELECT_KIND_BOOL)
    return TE_SELECT_AS_IS;
  return te_select_kernel_at(&all_stages.of[kind][target]) ? kind : TE_SELECT_AS_IS;
}

/* Checks a tensor and finds its strides in bytes. One without strides is compact. */
static int check_tensor(const DLTensor* t, int operand, DLDataType type, int64_t* strides) {
  DLDeviceType device = t->device.device_type;
  if (device != kDLCPU && device != kDLCUDAHost && device != kDLROCMHost) {
    return te_select_fail(&where, operand, "ValueError", "is not in memory of the CPU");
  }
  if (t->ndim < 0 || t->ndim > TE_SELECT_WHERE_RANK || (t->ndim && !t->shape)) {
    return te_select_fail(&where, operand, "ValueError", "has more than 64 dims");
  }
  if (operand == TE_SELECT_COND) type = (DLDataType){kDLBool, 8, 1};
  if (t->dtype.code != type.code || t->dtype.bits != type.bits || t->dtype.lanes != 1 ||
      type.bits % 8 || !type.bits || type.bits > 128) {
    return te_select_fail(&where, operand, "TypeError",
                          operand == TE_SELECT_COND ? "is not boolean" : "is not of out's type");
  }
  int64_t item = type.bits / 8;
  int64_t compact = item;
  int64_t reach = 0;
  int is_empty = 0;
  for (int32_t i = t->ndim - 1; i >= 0; --i) {
    int64_t dim = t->shape[i];
    if (dim < 0) return te_select_fail(&where, operand, "ValueError", "has a negative dim");
    is_empty |= dim == 0;
    strides[i] = 0;
    if (dim < 2) continue;
    strides[i] = compact;
    if ((t->strides && __builtin_mul_overflow(t->strides[i], item, &strides[i])) ||
        __builtin_mul_overflow(strides[i], dim, &reach) || reach > TE_SELECT_REACH ||
        reach < -TE_SELECT_REACH || __builtin_mul_overflow(compact, dim, &compact) ||
        compact > TE_SELECT_REACH) {
      return te_select_fail(&where, operand, "ValueError", "has more elements than any memory");
    }
  }
  if (!t->data && !is_empty) return te_select_fail(&where, operand, "ValueError", "has no memory");
  return 0;
}

/* Why the shapes do not fit: some input does not broadcast to out, or all do, and out is larger. */
__attribute__((cold, noinline)) static int refuse_shapes(const te_select_view* views) {
  te_select_where_call call = {.width = 1};
  te_select_join(&call, (te_select_view[TE_SELECT_INPUTS]){views[TE_SELECT_OUT]});
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
    if (te_select_broadcast(&call, i, views[i].ndim, views[i].shape, NULL)) continue;
    return te_select_fail(&where, i, "ValueError", "does not broadcast to out");
  }
  return te_select_fail(&where, TE_SELECT_OUT, "ValueError",
                        "is larger than what the inputs broadcast to");
}

/* Selects: the arguments are cond, x, y and out, of any shapes that broadcast to the shape of out. x and
 * y may be of a type that NumPy promotes to out's, if the library has stages. The result is one of the
 * results in where_call.h. If out overlaps an input, the call is refused, unless out has the address and
 * the strides of x or y. */
TE_SELECT_EXPORT(te_select_where) {
  te_select_return_int(result, 0);
  if (num_args != TE_SELECT_OPERANDS) {
    return te_select_fail(&where, -1, "TypeError", "expected cond, x, y, out");
  }
  const DLTensor* out = te_select_tensor_of(&args[TE_SELECT_OUT]);
  if (!out) return te_select_fail(&where, TE_SELECT_OUT, "TypeError", "is not a tensor");
  te_select_where_call call;
  call.width = out->dtype.bits / 8;
  te_select_where_sources sources = {{TE_SELECT_AS_IS, TE_SELECT_AS_IS, TE_SELECT_AS_IS},
                                     .out_kind = kind_of(out->dtype)};
  int is_staged = 0;
  te_select_view views[TE_SELECT_OPERANDS] = {{0}};
  int64_t strides[TE_SELECT_OPERANDS][TE_SELECT_WHERE_RANK];
  for (int k = TE_SELECT_OUT; k < TE_SELECT_OUT + TE_SELECT_OPERANDS; ++k) {
    int i = k % TE_SELECT_OPERANDS; /* out first, which says what the others may be */
    const DLTensor* t = te_select_tensor_of(&args[i]);
    if (!t) return te_select_fail(&where, i, "TypeError", "is not a tensor");
    DLDataType type = out->dtype;
    if (i == TE_SELECT_THEN || i == TE_SELECT_ELSE) {
      sources.kinds[i] = kind_of_side(t->dtype, type);
      if (sources.kinds[i] != TE_SELECT_AS_IS) type = t->dtype;
      is_staged |= sources.kinds[i] != TE_SELECT_AS_IS;
    }
    if (check_tensor(t, i, type, strides[i])) return -1;
    views[i] = (te_select_view){t->ndim, t->shape, strides[i]};
    call.data[i] = (char*)((uintptr_t)t->data + t->byte_offset); /* NULL if it is empty */
  }
  if (te_select_join(&call, views) < 0 || !te_select_join_out(&call, &views[TE_SELECT_OUT])) {
    return refuse_shapes(views);
  }
  int is_unsound = te_select_where_overlaps(&call, is_staged ? &sources : NULL);
  int32_t outcome = is_unsound  ? TE_SELECT_WHERE_UNSOUND
                    : is_staged ? call_staged(&call, &sources, NULL)
                                : call_any(&call, NULL);
  if (outcome < TE_SELECT_WHERE_NO_KERNEL) {
    return te_select_fail(&where, -1, is_unsound ? "ValueError" : "RuntimeError", "%s",
                          te_select_where_why(outcome));
  }
  te_select_return_int(result, outcome);
  return 0;
}
