/* Kernels of ONNX Runtime with a runtime that writes down what a call asks of it. */
#include "onnxruntime/where_kernel.c"
#include "where_in_c.c"

struct OrtValue {
  int64_t ndim;
  const int64_t* shape;
  char* data;
};

OrtValue values[TE_SELECT_OPERANDS]; /* cond, x, y and out */
int64_t loops, pieces, batches, released, is_shut_down;

static OrtStatus* get_input(const OrtKernelContext* context, size_t i, const OrtValue** out) {
  *out = &values[i];
  return NULL;
}

static OrtStatus* get_shape(const OrtValue* value, int* type, const int64_t** dims, size_t* count) {
  *type = 1;
  *dims = value->shape;
  *count = (size_t)value->ndim;
  return NULL;
}

static OrtStatus* get_data(OrtValue* value, void** out) {
  *out = value->data;
  return NULL;
}

static OrtStatus* get_output(OrtKernelContext* context, size_t i, const int64_t* dims, size_t count,
                             OrtValue** out) {
  *out = &values[TE_SELECT_OUT];
  return NULL;
}

static OrtStatus* run_pieces(const OrtKernelContext* context, void (*piece)(void*, size_t),
                             size_t count, size_t of_batches, void* data) {
  ++loops;
  pieces = (int64_t)count;
  batches = (int64_t)of_batches;
  for (size_t i = 0; i < count && !is_shut_down; ++i) piece(data, i);
  return is_shut_down ? (OrtStatus*)context : NULL;
}

static void release_status(OrtStatus* status) { ++released; }

/* Calls the kernel of a width. */
int run_node(int32_t width) {
  static OrtApi api;
  api.ReleaseStatus = release_status;
  api.KernelContext_GetInput = get_input;
  api.GetTensorElementTypeAndShapeDataReference = get_shape;
  api.GetTensorMutableData = get_data;
  api.KernelContext_GetOutput = get_output;
  api.KernelContext_ParallelFor = run_pieces;
  te_select_ort_kernel kernel = {.api = &api, .width = width};
  loops = pieces = batches = released = 0;
  return compute(&kernel.kernel, (OrtKernelContext*)&api) != NULL;
}
