/* The operator te_select::where for programs of torch without Python.
 *
 * Of torch it needs functions of the stable ABI alone, which are declared here. What the kernels do
 * not take, aten::where does. */
#include <string.h>

#include "where_library.h"

TE_SELECT_EXPORT(te_select_where_library);

typedef struct torch_tensor* tensor;
typedef struct torch_library* library;
typedef uint64_t value; /* an argument or a result: here always a tensor */
typedef void kernel(value* stack, uint64_t num_inputs, uint64_t num_outputs);

/* The functions that return int32_t fail with a result that is not 0, but for those of a type. */
int32_t aoti_torch_library_init_fragment(const char* name, const char* file, uint32_t line,
                                         library* found);
int32_t aoti_torch_library_init_impl(const char* name, const char* key, const char* file,
                                     uint32_t line, library* found);
int32_t aoti_torch_library_def(library self, const char* schema);
int32_t aoti_torch_library_impl(library self, const char* name, kernel* function);
int32_t aoti_torch_call_dispatcher(const char* name, const char* overload, value* stack);
int32_t aoti_torch_get_data_ptr(tensor self, void** found);
int32_t aoti_torch_get_dim(tensor self, int64_t* found);
int32_t aoti_torch_get_sizes(tensor self, int64_t** found);
int32_t aoti_torch_get_strides(tensor self, int64_t** found);
int32_t aoti_torch_get_dtype(tensor self, int32_t* found);
int32_t aoti_torch_get_device_type(tensor self, int32_t* found);
int32_t aoti_torch_empty_strided(int64_t ndim, const int64_t* sizes, const int64_t* strides,
                                 int32_t dtype, int32_t device_type, int32_t device_index,
                                 tensor* made);
int32_t aoti_torch_delete_tensor_object(tensor self);
int32_t aoti_torch_dtype_bool(void);
int32_t aoti_torch_device_type_cpu(void);
int32_t aoti_torch_memory_format_contiguous_format(void);
size_t aoti_torch_dtype_element_size(int32_t dtype);
__attribute__((weak)) const char* torch_exception_get_what_without_backtrace(void); /* 2.13 */

_Noreturn void throw_runtime_error(const char* text) __asm__("_ZSt21__throw_runtime_errorPKc");

static void throw_what_torch_says(void) {
  const char* said = torch_exception_get_what_without_backtrace
                         ? torch_exception_get_what_without_backtrace()
                         : NULL;
  throw_runtime_error(said ? said : "te_select::where: aten::where refuses the operands");
}

typedef struct {
  void* data;
  int64_t ndim, *shape, *strides;
  int32_t dtype, device;
} operand;

static int read_operand(tensor from, operand* to) {
  return !aoti_torch_get_data_ptr(from, &to->data) && !aoti_torch_get_dim(from, &to->ndim) &&
         !aoti_torch_get_sizes(from, &to->shape) && !aoti_torch_get_strides(from, &to->strides) &&
         !aoti_torch_get_dtype(from, &to->dtype) &&
         !aoti_torch_get_device_type(from, &to->device) && to->ndim <= TE_SELECT_WHERE_RANK &&
         to->device == aoti_torch_device_type_cpu();
}

/* The shape to which the operands broadcast, if they do, and the strides of a compact tensor. */
static void join(te_select_where_call* call, const operand* operands, int64_t* compact) {
  call->ndim = 0;
  for (int i = 0; i < TE_SELECT_OUT; ++i) {
    if (operands[i].ndim > call->ndim) call->ndim = (int32_t)operands[i].ndim;
  }
  int64_t elements = 1;
  for (int32_t axis = call->ndim - 1; axis >= 0; --axis) {
    call->shape[axis] = 1;
    for (int i = 0; i < TE_SELECT_OUT; ++i) {
      int64_t own = axis - call->ndim + operands[i].ndim;
      if (own >= 0 && operands[i].shape[own] != 1) call->shape[axis] = operands[i].shape[own];
    }
    compact[axis] = elements;
    elements *= call->shape[axis] ? call->shape[axis] : 1;
  }
}

static const te_select_where_library* kernels(void) {
  TVMFFIAny address;
  __tvm_ffi_te_select_where_library(NULL, NULL, 0, &address);
  return (const te_select_where_library*)(uintptr_t)address.v_int64;
}

/* Selects by kernels into a new tensor. Returns 0 if they do not take the operands. */
static int by_kernels(const value* stack, tensor* out) {
  operand operands[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OUT; ++i) {
    if (!read_operand((tensor)(uintptr_t)stack[i], &operands[i])) return 0;
  }
  const operand *then = &operands[TE_SELECT_THEN], *other = &operands[TE_SELECT_ELSE];
  if (operands[TE_SELECT_COND].dtype != aoti_torch_dtype_bool() || then->dtype != other->dtype) {
    return 0;
  }
  te_select_where_call call;
  int64_t compact[TE_SELECT_WHERE_RANK], strides[TE_SELECT_WHERE_RANK];
  call.width = (int32_t)aoti_torch_dtype_element_size(then->dtype);
  join(&call, operands, compact);
  operands[TE_SELECT_OUT] = (operand){.ndim = call.ndim, .shape = call.shape, .strides = compact};
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    int64_t item = i == TE_SELECT_COND ? 1 : call.width;
    for (int64_t k = 0; k < operands[i].ndim; ++k) strides[k] = operands[i].strides[k] * item;
    call.data[i] = operands[i].data;
    if (!te_select_broadcast(&call, i, (int32_t)operands[i].ndim, operands[i].shape, strides)) {
      return 0;
    }
  }
  if (aoti_torch_empty_strided(call.ndim, call.shape, compact, then->dtype, then->device, 0, out)) {
    return 0;
  }
  if (!aoti_torch_get_data_ptr(*out, (void**)&call.data[TE_SELECT_OUT]) &&
      kernels()->call(&call) >= TE_SELECT_WHERE_DONE) {
    return 1;
  }
  aoti_torch_delete_tensor_object(*out);
  return 0;
}

static void where(value* stack, uint64_t num_inputs, uint64_t num_outputs) {
  (void)num_outputs;
  tensor out;
  if (by_kernels(stack, &out)) {
    for (uint64_t i = 0; i < num_inputs; ++i) {
      aoti_torch_delete_tensor_object((tensor)(uintptr_t)stack[i]);
    }
    stack[0] = (value)(uintptr_t)out;
    return;
  }
  if (aoti_torch_call_dispatcher("aten::where", "self", stack)) throw_what_torch_says();
  value compact[2] = {stack[0], (value)(uint32_t)aoti_torch_memory_format_contiguous_format()};
  if (aoti_torch_call_dispatcher("aten::contiguous", "", compact)) throw_what_torch_says();
  stack[0] = compact[0];
}

/* Registers the operator, unless Python has it: torch takes one schema of a name. */
__attribute__((constructor)) static void add_to_torch(void) {
  library schema, functions;
  if (aoti_torch_library_init_fragment("te_select", "", 0, &schema) ||
      aoti_torch_library_def(schema, "where(Tensor cond, Tensor x, Tensor y) -> Tensor") ||
      aoti_torch_library_init_impl("te_select", "CPU", "", 0, &functions)) {
    return;
  }
  aoti_torch_library_impl(functions, "where", where);
}
