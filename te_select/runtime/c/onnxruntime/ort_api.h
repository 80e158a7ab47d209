/* What is used of ONNX Runtime's C API: the names of its types, the places of functions in its tables,
 * and a few numbers. A release adds functions at the end of a table and moves none. The numbers after
 * UNUSED are places. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct OrtDataType OrtDataType;
typedef struct OrtEp OrtEp;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtEpFactory OrtEpFactory;
typedef struct OrtEpGraphSupportInfo OrtEpGraphSupportInfo;
typedef struct OrtGraph OrtGraph;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtKernelDef OrtKernelDef;
typedef struct OrtKernelDefBuilder OrtKernelDefBuilder;
typedef struct OrtKernelImpl OrtKernelImpl;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelRegistry OrtKernelRegistry;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtNode OrtNode;
typedef struct OrtStatus OrtStatus; /* NULL: success */
typedef struct OrtValue OrtValue;
typedef struct OrtValueInfo OrtValueInfo;

enum { ORT_OLDEST_VERSION = 1, ORT_VERSION = 24 }; /* of what is used: 1.24 */
enum { ORT_FAIL = 1, ORT_INVALID_ARGUMENT = 2 };
enum { ORT_DEVICE_CPU = 0 };

/* Element types. */
enum { ORT_FLOAT = 1, ORT_UINT8, ORT_INT8, ORT_UINT16, ORT_INT16, ORT_INT32, ORT_INT64 };
enum { ORT_BOOL = 9, ORT_FLOAT16, ORT_DOUBLE, ORT_UINT32, ORT_UINT64 };
enum { ORT_BFLOAT16 = 16 };

/* Makes an instance of a kernel for a node. */
typedef OrtStatus* (*OrtKernelCreateFunc)(void* state, const OrtKernelInfo* info,
                                          OrtKernelImpl** out);

/* clang-format off */
#define UNUSED(from, to) void (*unused_##from[(to) - (from)])(void)
typedef struct {
  OrtStatus* (*CreateEpDevice)(OrtEpFactory* factory, const OrtHardwareDevice* device,
                               const OrtKeyValuePairs* metadata, const void* options,
                               OrtEpDevice** out);
  UNUSED(1, 3);
  OrtStatus* (*EpGraphSupportInfo_AddSingleNode)(OrtEpGraphSupportInfo* info,
                                                 const OrtNode* node);
  UNUSED(4, 18);
  OrtStatus* (*CreateKernelRegistry)(OrtKernelRegistry** out);
  void (*ReleaseKernelRegistry)(OrtKernelRegistry* registry);
  OrtStatus* (*KernelRegistry_AddKernel)(OrtKernelRegistry* registry, const OrtKernelDef* def,
                                         OrtKernelCreateFunc create, void* state);
  OrtStatus* (*CreateKernelDefBuilder)(OrtKernelDefBuilder** out);
  void (*ReleaseKernelDefBuilder)(OrtKernelDefBuilder* builder);
  OrtStatus* (*KernelDefBuilder_SetOperatorType)(OrtKernelDefBuilder* builder, const char* type);
  OrtStatus* (*KernelDefBuilder_SetDomain)(OrtKernelDefBuilder* builder, const char* domain);
  OrtStatus* (*KernelDefBuilder_SetSinceVersion)(OrtKernelDefBuilder* builder, int first,
                                                 int last);
  OrtStatus* (*KernelDefBuilder_SetExecutionProvider)(OrtKernelDefBuilder* builder,
                                                      const char* name);
  UNUSED(27, 29);
  OrtStatus* (*KernelDefBuilder_AddTypeConstraint)(OrtKernelDefBuilder* builder, const char* name,
                                                   const OrtDataType* const* types, size_t count);
  UNUSED(30, 32);
  OrtStatus* (*KernelDefBuilder_Build)(OrtKernelDefBuilder* builder, OrtKernelDef** out);
  void (*ReleaseKernelDef)(OrtKernelDef* def);
  UNUSED(34, 40);
  OrtStatus* (*GetTensorDataType)(int type, const OrtDataType** out);
  OrtStatus* (*EpGraphSupportInfo_LookUpKernel)(OrtEpGraphSupportInfo* info, const OrtNode* node,
                                                const OrtKernelDef** out);
} OrtEpApi;
_Static_assert(offsetof(OrtEpApi, EpGraphSupportInfo_LookUpKernel) == 41 * sizeof(void*),
               "no place is left out");

typedef struct {
  OrtStatus* (*CreateStatus)(int code, const char* message);
  UNUSED(1, 51);
  OrtStatus* (*GetTensorMutableData)(OrtValue* value, void** out);
  UNUSED(52, 90);
  OrtStatus* (*KernelContext_GetInput)(const OrtKernelContext* context, size_t index,
                                       const OrtValue** out);
  OrtStatus* (*KernelContext_GetOutput)(OrtKernelContext* context, size_t index,
                                        const int64_t* dims, size_t count, OrtValue** out);
  UNUSED(92, 93);
  void (*ReleaseStatus)(OrtStatus* status);
  UNUSED(94, 274);
  OrtStatus* (*KernelContext_ParallelFor)(const OrtKernelContext* context,
                                          void (*piece)(void* data, size_t i), size_t count,
                                          size_t batches, void* data);
  UNUSED(275, 295);
  void (*CreateKeyValuePairs)(OrtKeyValuePairs** out);
  void (*AddKeyValuePair)(OrtKeyValuePairs* pairs, const char* key, const char* value);
  UNUSED(297, 300);
  void (*ReleaseKeyValuePairs)(OrtKeyValuePairs* pairs);
  UNUSED(301, 307);
  int (*HardwareDevice_Type)(const OrtHardwareDevice* device);
  UNUSED(308, 317);
  const OrtEpApi* (*GetEpApi)(void);
  UNUSED(318, 323);
  OrtStatus* (*ValueInfo_GetValueProducer)(const OrtValueInfo* value, const OrtNode** producer,
                                           size_t* index);
  UNUSED(324, 344);
  OrtStatus* (*Graph_GetNumNodes)(const OrtGraph* graph, size_t* count);
  OrtStatus* (*Graph_GetNodes)(const OrtGraph* graph, const OrtNode** nodes, size_t count);
  UNUSED(346, 350);
  OrtStatus* (*Node_GetOperatorType)(const OrtNode* node, const char** out);
  UNUSED(351, 354);
  OrtStatus* (*Node_GetInputs)(const OrtNode* node, const OrtValueInfo** inputs, size_t count);
  UNUSED(355, 414);
  OrtStatus* (*GetTensorElementTypeAndShapeDataReference)(const OrtValue* value, int* type,
                                                          const int64_t** dims, size_t* count);
} OrtApi;
_Static_assert(offsetof(OrtApi, GetTensorElementTypeAndShapeDataReference) == 414 * sizeof(void*),
               "no place is left out");

typedef struct {
  const OrtApi* (*GetApi)(uint32_t version); /* NULL: it has not that version */
  const char* (*GetVersionString)(void);     /* such as "1.24.4" */
} OrtApiBase;

/* What a provider hands over. What it has not is NULL. */
struct OrtEpFactory {
  uint32_t version;
  const char* (*GetName)(const OrtEpFactory* factory);
  const char* (*GetVendor)(const OrtEpFactory* factory);
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory* factory, const OrtHardwareDevice* const* devices,
                                    size_t count, OrtEpDevice** out, size_t most, size_t* found);
  OrtStatus* (*CreateEp)(OrtEpFactory* factory, const OrtHardwareDevice* const* devices,
                         const void* metadata, size_t count, const void* options,
                         const void* logger, OrtEp** out);
  void (*ReleaseEp)(OrtEpFactory* factory, OrtEp* ep);
  uint32_t (*GetVendorId)(const OrtEpFactory* factory);
  const char* (*GetVersion)(const OrtEpFactory* factory);
  UNUSED(8, 11);
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory* factory, void** out);
  bool (*IsStreamAware)(const OrtEpFactory* factory);
  UNUSED(13, 18);
};

struct OrtEp {
  uint32_t version;
  const char* (*GetName)(const OrtEp* ep);
  OrtStatus* (*GetCapability)(OrtEp* ep, const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  UNUSED(3, 13);
  OrtStatus* (*GetKernelRegistry)(OrtEp* ep, const OrtKernelRegistry** out);
  UNUSED(14, 15);
};

struct OrtKernelImpl {
  uint32_t version, flags;
  OrtStatus* (*Compute)(OrtKernelImpl* kernel, OrtKernelContext* context);
  void (*Release)(OrtKernelImpl* kernel);
  UNUSED(3, 5);
};
#undef UNUSED
/* clang-format on */

/* A parameter that ONNX Runtime gives and we do not need. */
#define ORT_UNUSED __attribute__((unused))

/* Returns from a function of ours with the error of one of theirs. */
#define ORT_TRY(call)                  \
  do {                                 \
    OrtStatus* status = (call);        \
    if (status != NULL) return status; \
  } while (0)
