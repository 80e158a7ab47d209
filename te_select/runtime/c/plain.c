/* The plain C functions: what lies between their arguments and the exported functions. */
#include "plain.h"

static const int64_t* extents(const te_select_shape* shape, const int64_t* sizes, int64_t* dims) {
  for (int32_t i = 0; i < shape->ndim; ++i) {
    dims[i] = shape->dims[i] < 0 ? sizes[-(shape->dims[i] + 1)] : shape->dims[i];
  }
  return dims;
}

int te_select_make_arguments(const te_select_kernel* kernel, void* const* data,
                             const DLDevice* devices, const int64_t* sizes,
                             te_select_arguments* taken) {
  const te_select_request r = {.kernel = kernel, .mode = TE_SELECT_PLAIN};
  for (int32_t i = 0; i < kernel->num_names; ++i) {
    if (sizes[i] >= 0) continue;
    return te_select_fail(&r, -1, "ValueError", "the size of %s is %lld; expected 0 or more",
                          kernel->names[i], (long long)sizes[i]);
  }
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    const te_select_shape* shape = &kernel->shapes[i];
    const int64_t* dims = kernel->num_names ? extents(shape, sizes, taken->dims[i]) : shape->dims;
    DLTensor* t = &taken->tensors[i];
    t->data = data[i];
    t->device = devices[i];
    t->ndim = shape->ndim;
    t->dtype = i == TE_SELECT_COND ? (DLDataType){kDLBool, 8, 1}
                                   : (DLDataType){kernel->code, kernel->bits, 1};
    t->shape = (int64_t*)dims; /* which is not written */
    t->strides = NULL;
    t->byte_offset = 0;
    taken->args[i] = (TVMFFIAny){.type_index = kTVMFFIDLTensorPtr, .v_ptr = t};
  }
  return 0;
}
