/* The operator te_select::where for programs of torch without Python.
 *
 * Of torch it needs functions of the stable ABI, which are declared here, and one more, which tells of
 * forward mode. What the kernels do not take, aten::where does. */
#include "where_library.h"

TE_SELECT_EXPORT(te_select_where);

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

/* A std::shared_ptr as libstdc++ has it: its counts begin with a pointer, and the number of owners.
 * A function returns it by address, as this struct of more than two words. */
typedef struct {
  void* object;
  char* counts;
  void* none;
} shared_pointer;
shared_pointer forward_level(size_t index) __asm__(
    "_ZN5torch8autograd14ForwardADLevel14try_get_by_idxEm");

_Noreturn void throw_runtime_error(const char* text) __asm__("_ZSt21__throw_runtime_errorPKc");

static void throw_what_torch_says(void) {
  const char* said = torch_exception_get_what_without_backtrace
                         ? torch_exception_get_what_without_backtrace()
                         : NULL;
  throw_runtime_error(said ? said : "te_select::where: aten::where refuses the operands");
}

/* A tensor of the CPU as the kernels take it: selecting copies bits, so only the width counts. */
static int read_operand(tensor from, DLTensor* to, int32_t* dtype) {
  int64_t ndim;
  int32_t device;
  if (aoti_torch_get_data_ptr(from, &to->data) || aoti_torch_get_dim(from, &ndim) ||
      aoti_torch_get_sizes(from, &to->shape) || aoti_torch_get_strides(from, &to->strides) ||
      aoti_torch_get_dtype(from, dtype) || aoti_torch_get_device_type(from, &device)) {
    return 0;
  }
  int is_bool = *dtype == aoti_torch_dtype_bool();
  to->device = (DLDevice){kDLCPU, 0};
  to->ndim = (int32_t)ndim;
  to->dtype = (DLDataType){is_bool ? kDLBool : kDLUInt,
                           (uint8_t)(8 * aoti_torch_dtype_element_size(*dtype)), 1};
  to->byte_offset = 0;
  return ndim <= TE_SELECT_WHERE_RANK && device == aoti_torch_device_type_cpu();
}

/* Makes out: compact, and of the shape to which the operands broadcast, if they do. */
static int make_out(const DLTensor* operands, int32_t dtype, tensor* out) {
  int64_t shape[TE_SELECT_WHERE_RANK], strides[TE_SELECT_WHERE_RANK], elements = 1;
  int32_t ndim = 0;
  for (int i = 0; i < TE_SELECT_OUT; ++i) {
    if (operands[i].ndim > ndim) ndim = operands[i].ndim;
  }
  for (int32_t axis = ndim - 1; axis >= 0; --axis) {
    shape[axis] = 1;
    for (int i = 0; i < TE_SELECT_OUT; ++i) {
      int32_t own = axis - ndim + operands[i].ndim;
      if (own >= 0 && operands[i].shape[own] != 1) shape[axis] = operands[i].shape[own];
    }
    strides[axis] = elements;
    elements *= shape[axis] ? shape[axis] : 1;
  }
  int32_t cpu = aoti_torch_device_type_cpu();
  return !aoti_torch_empty_strided(ndim, shape, strides, dtype, cpu, 0, out);
}

/* Whether somebody differentiates in forward mode. Operands with tangents look like others here,
 * because torch calls an operator below its derivatives. */
static int is_forward_mode(void) {
  shared_pointer level = forward_level(0);
  if (!level.object) return 0;
  __atomic_fetch_sub((int32_t*)(level.counts + sizeof(void*)), 1, __ATOMIC_ACQ_REL);
  return 1;
}

/* Selects by kernels into a new tensor. Returns 0 if they do not take the operands. */
static int by_kernels(const value* stack, tensor* out) {
  DLTensor tensors[TE_SELECT_OPERANDS];
  int32_t dtypes[TE_SELECT_OPERANDS];
  TVMFFIAny args[TE_SELECT_OPERANDS], result;
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (i == TE_SELECT_OUT) {
      if (dtypes[TE_SELECT_THEN] != dtypes[TE_SELECT_ELSE]) return 0;
      if (!make_out(tensors, dtypes[TE_SELECT_THEN], out)) return 0;
    }
    tensor each = i == TE_SELECT_OUT ? *out : (tensor)(uintptr_t)stack[i];
    if (!read_operand(each, &tensors[i], &dtypes[i])) return 0;
    args[i] = (TVMFFIAny){.type_index = kTVMFFIDLTensorPtr, .v_ptr = &tensors[i]};
  }
  if (!__tvm_ffi_te_select_where(NULL, args, TE_SELECT_OPERANDS, &result)) return 1;
  aoti_torch_delete_tensor_object(*out);
  return 0;
}

static void where(value* stack, uint64_t num_inputs, uint64_t num_outputs) {
  (void)num_outputs;
  tensor out;
  if (is_forward_mode()) {
    throw_runtime_error(
        "te_select::where of this library has no forward-mode derivative; use it "
        "outside of forward mode, import te_select.torch, or call torch.where");
  }
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
