/* A node's kernel: it selects on the threads of the session. */
#include "where_kernel.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "where_abi.h"
#include "where_library.h"

static _Atomic int64_t calls;

/* How many calls have been done. */
__attribute__((visibility("default"))) int64_t te_select_ort_calls(void) {
  return atomic_load(&calls);
}

/* ---- a call ---------------------------------------------------------------------------------------- */

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

/* Selects where a program has bound out over an input: into fresh memory first. */
static int32_t call_by_copy(te_select_where_call* call, session* s) {
  size_t bytes = (size_t)call->width;
  for (int32_t i = 0; i < call->ndim; ++i) bytes *= (size_t)call->shape[i];
  char* out = call->data[TE_SELECT_OUT];
  char* fresh = malloc(bytes);
  if (!fresh) return TE_SELECT_WHERE_FAILED;
  call->data[TE_SELECT_OUT] = fresh;
  int32_t result = te_select_where_call_on(call, parallel_for, s, 0);
  if (result >= 0) memcpy(out, fresh, bytes);
  free(fresh);
  return result;
}

static OrtStatus* compute(OrtKernelImpl* kernel, OrtKernelContext* context) {
  const te_select_ort_kernel* k = (const te_select_ort_kernel*)kernel;
  const OrtApi* api = k->api;
  const OrtValue* input;
  OrtValue* out;
  int type;
  size_t ndim;
  te_select_view views[TE_SELECT_INPUTS] = {0};
  te_select_where_call call;
  call.width = k->width;
  for (size_t i = 0; i < TE_SELECT_INPUTS; ++i) {
    ORT_TRY(api->KernelContext_GetInput(context, i, &input));
    ORT_TRY(api->GetTensorElementTypeAndShapeDataReference(input, &type, &views[i].shape, &ndim));
    ORT_TRY(api->GetTensorMutableData((OrtValue*)input, (void**)&call.data[i]));
    views[i].ndim = (int32_t)ndim;
  }
  if (te_select_join(&call, views) < 0) {
    return api->CreateStatus(ORT_INVALID_ARGUMENT,
                             "te_select: the inputs of Where do not broadcast with each other, or "
                             "have more than 64 dims");
  }
  te_select_broadcast(&call, TE_SELECT_OUT, call.ndim, call.shape, NULL);
  ORT_TRY(api->KernelContext_GetOutput(context, 0, call.shape, (size_t)call.ndim, &out));
  ORT_TRY(api->GetTensorMutableData(out, (void**)&call.data[TE_SELECT_OUT]));
  session of_call = {api, context};
  int32_t result = te_select_where_call_on(&call, parallel_for, &of_call, 0);
  if (result == TE_SELECT_WHERE_UNSOUND && te_select_where_overlaps(&call, NULL)) {
    result = call_by_copy(&call, &of_call);
  }
  if (result < 0) {
    char text[400];
    snprintf(text, sizeof(text), "te_select: Where: %s", te_select_where_why(result));
    return api->CreateStatus(ORT_FAIL, text);
  }
  atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
  return NULL;
}

/* ---- the kernels ----------------------------------------------------------------------------------- */

static OrtStatus* create(void* state, ORT_UNUSED const OrtKernelInfo* info, OrtKernelImpl** out) {
  *out = state;
  return NULL;
}

static void release_kernel(ORT_UNUSED OrtKernelImpl* kernel) {}

enum { MOST_TYPES = 4, FIRST_VERSION = 9, LAST_VERSION = 16 };

typedef struct {
  int32_t width;
  size_t count;
  int types[MOST_TYPES];
} kind;

static const kind kinds[TE_SELECT_ORT_WIDTHS] = {
    {1, 3, {ORT_BOOL, ORT_INT8, ORT_UINT8}},
    {2, 4, {ORT_INT16, ORT_UINT16, ORT_FLOAT16, ORT_BFLOAT16}},
    {4, 3, {ORT_INT32, ORT_UINT32, ORT_FLOAT}},
    {8, 3, {ORT_INT64, ORT_UINT64, ORT_DOUBLE}}};

static OrtStatus* describe_kernel(const OrtEpApi* ep_api, const char* provider, const kind* of,
                                  OrtKernelDefBuilder* builder) {
  const OrtDataType* types[MOST_TYPES];
  for (size_t i = 0; i < of->count; ++i) {
    ORT_TRY(ep_api->GetTensorDataType(of->types[i], &types[i]));
  }
  ORT_TRY(ep_api->KernelDefBuilder_SetOperatorType(builder, "Where"));
  ORT_TRY(ep_api->KernelDefBuilder_SetDomain(builder, ""));
  ORT_TRY(ep_api->KernelDefBuilder_SetSinceVersion(builder, FIRST_VERSION, LAST_VERSION));
  ORT_TRY(ep_api->KernelDefBuilder_SetExecutionProvider(builder, provider));
  return ep_api->KernelDefBuilder_AddTypeConstraint(builder, "T", types, of->count);
}

static OrtStatus* add_kernel(const OrtEpApi* ep_api, const char* provider, const kind* of,
                             te_select_ort_kernel* kernel, OrtKernelRegistry* registry) {
  OrtKernelDefBuilder* builder;
  OrtKernelDef* def = NULL;
  ORT_TRY(ep_api->CreateKernelDefBuilder(&builder));
  OrtStatus* status = describe_kernel(ep_api, provider, of, builder);
  if (!status) status = ep_api->KernelDefBuilder_Build(builder, &def);
  if (!status) status = ep_api->KernelRegistry_AddKernel(registry, def, create, kernel);
  if (def) ep_api->ReleaseKernelDef(def);
  ep_api->ReleaseKernelDefBuilder(builder);
  return status;
}

OrtStatus* te_select_ort_add_kernels(const OrtApi* api, const char* provider,
                                     te_select_ort_kernel kernels[TE_SELECT_ORT_WIDTHS],
                                     OrtKernelRegistry* registry) {
  for (int i = 0; i < TE_SELECT_ORT_WIDTHS; ++i) {
    kernels[i] = (te_select_ort_kernel){
        .kernel = {.version = ORT_VERSION, .Compute = compute, .Release = release_kernel},
        .api = api,
        .width = kinds[i].width};
    ORT_TRY(add_kernel(api->GetEpApi(), provider, &kinds[i], &kernels[i], registry));
  }
  return NULL;
}
