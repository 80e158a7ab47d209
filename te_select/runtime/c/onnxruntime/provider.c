/* A plug-in execution provider for ONNX Runtime: which nodes of a graph are ours, and their kernels.
 *
 * A provider lives as long as the process. ONNX Runtime lets a program unregister the library while
 * sessions still have kernels of it, so nothing is freed then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operand_order.h"
#include "where_kernel.h"

static const char NAME[] = "TeSelectExecutionProvider";

typedef struct {
  OrtEpFactory factory; /* first: ONNX Runtime hands back its address */
  OrtEp ep;             /* of all sessions */
  const OrtApi* api;
  const OrtEpApi* ep_api;
  OrtKernelRegistry* registry;
  te_select_ort_kernel kernels[TE_SELECT_ORT_WIDTHS];
} provider;

static const provider* provider_of(const OrtEp* ep) {
  return (const provider*)((const char*)ep - offsetof(provider, ep));
}

/* ---- a session ------------------------------------------------------------------------------------- */

static OrtStatus* is_dequantized(const OrtApi* api, const OrtValueInfo* value, int* result) {
  const OrtNode* producer = NULL;
  const char* type = "";
  size_t index;
  ORT_TRY(api->ValueInfo_GetValueProducer(value, &producer, &index));
  if (producer) ORT_TRY(api->Node_GetOperatorType(producer, &type));
  *result = !strcmp(type, "DequantizeLinear");
  return NULL;
}

/* Whether a node has a kernel of ours. ONNX Runtime fuses a Where between DequantizeLinear and
 * QuantizeLinear with these, if it is its own. */
static OrtStatus* is_ours(const provider* p, OrtEpGraphSupportInfo* info, const OrtNode* node,
                          int* result) {
  const OrtKernelDef* kernel = NULL;
  const OrtValueInfo* inputs[TE_SELECT_INPUTS];
  int of_then, of_else;
  *result = 0;
  ORT_TRY(p->ep_api->EpGraphSupportInfo_LookUpKernel(info, node, &kernel));
  if (!kernel) return NULL;
  ORT_TRY(p->api->Node_GetInputs(node, inputs, TE_SELECT_INPUTS));
  ORT_TRY(is_dequantized(p->api, inputs[TE_SELECT_THEN], &of_then));
  ORT_TRY(is_dequantized(p->api, inputs[TE_SELECT_ELSE], &of_else));
  *result = !of_then || !of_else;
  return NULL;
}

static OrtStatus* claim_nodes(OrtEp* ep, const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  const provider* p = provider_of(ep);
  size_t count;
  int ours = 0;
  ORT_TRY(p->api->Graph_GetNumNodes(graph, &count));
  const OrtNode** nodes = malloc((count + 1) * sizeof(*nodes));
  if (!nodes) return p->api->CreateStatus(ORT_FAIL, "te_select: there is no memory for a graph");
  OrtStatus* status = p->api->Graph_GetNodes(graph, nodes, count);
  for (size_t i = 0; i < count && !status; ++i) {
    status = is_ours(p, info, nodes[i], &ours);
    if (!status && ours) status = p->ep_api->EpGraphSupportInfo_AddSingleNode(info, nodes[i]);
  }
  free(nodes);
  return status;
}

static OrtStatus* find_kernels(OrtEp* ep, const OrtKernelRegistry** out) {
  *out = provider_of(ep)->registry;
  return NULL;
}

static const char* name_of_ep(ORT_UNUSED const OrtEp* ep) { return NAME; }

/* ---- the library ----------------------------------------------------------------------------------- */

static const char* name(ORT_UNUSED const OrtEpFactory* factory) { return NAME; }
static const char* vendor(ORT_UNUSED const OrtEpFactory* factory) { return "te-select"; }
static uint32_t vendor_id(ORT_UNUSED const OrtEpFactory* factory) { return 0; }
static const char* version(ORT_UNUSED const OrtEpFactory* factory) { return "1.0.0"; }
static bool is_stream_aware(ORT_UNUSED const OrtEpFactory* factory) { return false; }
static void release_ep(ORT_UNUSED OrtEpFactory* factory, ORT_UNUSED OrtEp* ep) {}

/* The CPU, once. Its metadata tell one registration from another: no two have a provider of one address,
 * as none is freed. */
static OrtStatus* find_devices(OrtEpFactory* factory, const OrtHardwareDevice* const* devices,
                               size_t count, OrtEpDevice** out, size_t most, size_t* found) {
  const provider* p = (const provider*)factory;
  *found = 0;
  for (size_t i = 0; i < count && most; ++i) {
    if (p->api->HardwareDevice_Type(devices[i]) != ORT_DEVICE_CPU) continue;
    char address[32];
    OrtKeyValuePairs* metadata;
    snprintf(address, sizeof(address), "%p", (void*)factory);
    p->api->CreateKeyValuePairs(&metadata);
    p->api->AddKeyValuePair(metadata, "registration", address);
    OrtStatus* status = p->ep_api->CreateEpDevice(factory, devices[i], metadata, NULL, out);
    p->api->ReleaseKeyValuePairs(metadata);
    *found = !status;
    return status;
  }
  return NULL;
}

static OrtStatus* new_ep(OrtEpFactory* factory, ORT_UNUSED const OrtHardwareDevice* const* devices,
                         ORT_UNUSED const void* metadata, ORT_UNUSED size_t count,
                         ORT_UNUSED const void* options, ORT_UNUSED const void* logger,
                         OrtEp** out) {
  *out = &((provider*)factory)->ep;
  return NULL;
}

/* ONNX Runtime calls this function whether there is one or not. */
static OrtStatus* find_data_transfer(ORT_UNUSED OrtEpFactory* factory, void** out) {
  *out = NULL;
  return NULL;
}

static OrtStatus* fill_provider(provider* made, const OrtApi* api) {
  *made = (provider){.factory = {.version = ORT_VERSION,
                                 .GetName = name,
                                 .GetVendor = vendor,
                                 .GetSupportedDevices = find_devices,
                                 .CreateEp = new_ep,
                                 .ReleaseEp = release_ep,
                                 .GetVendorId = vendor_id,
                                 .GetVersion = version,
                                 .CreateDataTransfer = find_data_transfer,
                                 .IsStreamAware = is_stream_aware},
                     .ep = {.version = ORT_VERSION,
                            .GetName = name_of_ep,
                            .GetCapability = claim_nodes,
                            .GetKernelRegistry = find_kernels},
                     .api = api,
                     .ep_api = api->GetEpApi()};
  ORT_TRY(made->ep_api->CreateKernelRegistry(&made->registry));
  return te_select_ort_add_kernels(api, NAME, made->kernels, made->registry);
}

__attribute__((visibility("default"))) OrtStatus* CreateEpFactories(
    ORT_UNUSED const char* registered_as, const OrtApiBase* base, ORT_UNUSED const void* logger,
    OrtEpFactory** out, ORT_UNUSED size_t most, size_t* count) {
  unsigned major = 0, minor = 0;
  sscanf(base->GetVersionString(), "%u.%u", &major, &minor);
  const OrtApi* api = major == 1 && minor >= ORT_VERSION ? base->GetApi(ORT_VERSION) : NULL;
  *count = 0;
  if (!api) {
    char text[160];
    snprintf(text, sizeof(text),
             "te_select needs ONNX Runtime 1.%d or newer, of version 1; this is %.40s", ORT_VERSION,
             base->GetVersionString());
    api = base->GetApi(ORT_OLDEST_VERSION);
    return api ? api->CreateStatus(ORT_FAIL, text) : NULL;
  }
  provider* made = malloc(sizeof(*made));
  if (!made) return api->CreateStatus(ORT_FAIL, "te_select: there is no memory for a provider");
  OrtStatus* status = fill_provider(made, api);
  if (status) {
    if (made->registry) made->ep_api->ReleaseKernelRegistry(made->registry);
    free(made);
    return status;
  }
  *out = &made->factory;
  *count = 1;
  return NULL;
}

__attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(
    ORT_UNUSED OrtEpFactory* factory) {
  return NULL;
}
