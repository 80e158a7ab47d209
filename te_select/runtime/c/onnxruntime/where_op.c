/* A node's kernel: it selects on the threads of the session. */
#include "where_op.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "where_library.h"

typedef struct {
  const te_select_where_op* op;
  const OrtApi* api;
  OrtOp* of_strings;
  int32_t processors; /* the most threads that pay; to ask for it takes longer than a short call */
} kernel_of_node;

static _Atomic int64_t calls;

/* How many calls have been done. */
__attribute__((visibility("default"))) int64_t te_select_ort_calls(void) {
  return atomic_load(&calls);
}

/* ---- a call ---------------------------------------------------------------------------------------- */

static OrtStatus* find_shape(const OrtApi* api, const OrtValue* value, int64_t* shape,
                             te_select_view* found) {
  OrtTensorTypeAndShapeInfo* info;
  size_t count = 0;
  ORT_TRY(api->GetTensorTypeAndShape(value, &info));
  OrtStatus* status = api->GetDimensionsCount(info, &count);
  if (!status && count > TE_SELECT_WHERE_RANK) {
    status = api->CreateStatus(ORT_INVALID_ARGUMENT, "te_select: Where has more than 64 dims");
  }
  if (!status) status = api->GetDimensions(info, shape, count);
  api->ReleaseTensorTypeAndShapeInfo(info);
  *found = (te_select_view){.ndim = (int32_t)count, .shape = shape};
  return status;
}

typedef struct {
  const OrtApi* api;
  const OrtKernelContext* context;
} session;

static void parallel_for(void* pool, void (*piece)(void* data, size_t i), size_t count,
                         void* data) {
  const session* s = pool;
  OrtStatus* status = s->api->KernelContext_ParallelFor(s->context, piece, count, 0, data);
  if (status) s->api->ReleaseStatus(status); /* the caller does what is left */
}

static OrtStatus* compute(void* kernel, OrtKernelContext* context) {
  const kernel_of_node* k = kernel;
  const OrtApi* api = k->api;
  const OrtValue* inputs[TE_SELECT_INPUTS];
  OrtValue* out;
  int64_t shapes[TE_SELECT_INPUTS][TE_SELECT_WHERE_RANK];
  te_select_view views[TE_SELECT_INPUTS];
  te_select_where_call call;
  for (size_t i = 0; i < TE_SELECT_INPUTS; ++i) {
    ORT_TRY(api->KernelContext_GetInput(context, i, &inputs[i]));
    ORT_TRY(find_shape(api, inputs[i], shapes[i], &views[i]));
  }
  call.width = k->op->width;
  if (te_select_join(&call, views) < 0) {
    return api->CreateStatus(ORT_INVALID_ARGUMENT,
                             "te_select: the inputs of Where do not broadcast with each other");
  }
  te_select_broadcast(&call, TE_SELECT_OUT, call.ndim, call.shape, NULL);
  ORT_TRY(api->KernelContext_GetOutput(context, 0, call.shape, (size_t)call.ndim, &out));
  if (k->of_strings) {
    return api->InvokeOp(context, k->of_strings, inputs, TE_SELECT_INPUTS, &out, 1);
  }
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    OrtValue* value = i == TE_SELECT_OUT ? out : (OrtValue*)inputs[i];
    ORT_TRY(api->GetTensorMutableData(value, (void**)&call.data[i]));
  }
  session of_call = {api, context};
  int32_t result = te_select_where_call_on(&call, parallel_for, &of_call, k->processors);
  if (result < 0) {
    char text[400];
    snprintf(text, sizeof(text), "te_select: Where: %s", te_select_where_why(result));
    return api->CreateStatus(ORT_FAIL, text);
  }
  atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
  return NULL;
}

/* ---- an operator ----------------------------------------------------------------------------------- */

static OrtStatus* create(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info,
                         void** kernel) {
  kernel_of_node made = {.op = (const te_select_where_op*)op,
                         .api = api,
                         .processors = (int32_t)sysconf(_SC_NPROCESSORS_ONLN)};
  if (made.op->type == ORT_STRING) {
    const char* constraint = "T";
    const int version = 16;
    ORT_TRY(api->CreateOp(info, "Where", "", version, &constraint, &made.op->type, 1, NULL, 0,
                          TE_SELECT_INPUTS, 1, &made.of_strings));
  }
  kernel_of_node* kept = malloc(sizeof(made));
  if (!kept) {
    if (made.of_strings) api->ReleaseOp(made.of_strings);
    return api->CreateStatus(ORT_FAIL, "te_select: there is no memory for a node of Where");
  }
  *kept = made;
  *kernel = kept;
  return NULL;
}

static void destroy(void* kernel) {
  kernel_of_node* k = kernel;
  if (k->of_strings) k->api->ReleaseOp(k->of_strings);
  free(k);
}

#define OP __attribute__((unused)) const OrtCustomOp* op
#define OP_AND_INDEX OP, __attribute__((unused)) size_t index
static const char* name(OP) { return "Where"; }
static const char* provider(OP) { return NULL; } /* the CPU's */
static size_t inputs_of(OP) { return TE_SELECT_INPUTS; }
static size_t outputs_of(OP) { return 1; }
static int type_of_output(OP_AND_INDEX) { return ((const te_select_where_op*)op)->type; }
static int type_of_input(OP_AND_INDEX) {
  return index == TE_SELECT_COND ? ORT_BOOL : type_of_output(op, 0);
}
static int required(OP_AND_INDEX) { return ORT_REQUIRED; }
static int memory(OP_AND_INDEX) { return ORT_MEMORY_DEFAULT; }
static int since_version(OP) { return ((const te_select_where_op*)op)->first_version; }
static int last_version(OP) { return INT32_MAX; }

/* Out may lie in the place of then or of else. */
static size_t in_place(int** inputs, int** outputs) {
  static int sides[] = {TE_SELECT_THEN, TE_SELECT_ELSE}, out[] = {0, 0};
  *inputs = sides;
  *outputs = out;
  return 2;
}

static void keep(__attribute__((unused)) int* inputs, __attribute__((unused)) int* outputs) {}

te_select_where_op te_select_make_where_op(const OrtApi* api, int type, int32_t width,
                                           int first_version) {
  return (te_select_where_op){.op = {.version = ORT_VERSION,
                                     .GetName = name,
                                     .GetExecutionProviderType = provider,
                                     .GetInputType = type_of_input,
                                     .GetInputTypeCount = inputs_of,
                                     .GetOutputType = type_of_output,
                                     .GetOutputTypeCount = outputs_of,
                                     .KernelDestroy = destroy,
                                     .GetInputCharacteristic = required,
                                     .GetOutputCharacteristic = required,
                                     .GetInputMemoryType = memory,
                                     .CreateKernelV2 = create,
                                     .KernelComputeV2 = compute,
                                     .InferOutputShapeFn = te_select_infer_shape,
                                     .GetStartVersion = since_version,
                                     .GetEndVersion = last_version,
                                     .GetMayInplace = width ? in_place : NULL,
                                     .ReleaseMayInplace = width ? keep : NULL},
                              .api = api,
                              .type = type,
                              .width = width,
                              .first_version = first_version};
}
