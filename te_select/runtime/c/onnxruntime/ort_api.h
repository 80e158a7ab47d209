/* What is used of ONNX Runtime's C API: the names of its types, the places of functions in its tables,
 * and a few numbers. A release adds functions at the end of a table and moves none. The numbers after
 * UNUSED are places. */
#ifndef TE_SELECT_ORT_API_H_
#define TE_SELECT_ORT_API_H_

#include <stddef.h>
#include <stdint.h>

typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtOp OrtOp;
typedef struct OrtOpAttr OrtOpAttr;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtStatus OrtStatus; /* NULL: success */
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtValue OrtValue;
typedef struct OrtCustomOp OrtCustomOp;

enum { ORT_OLDEST_VERSION = 1, ORT_VERSION = 18 }; /* of what is used: 1.18 */
enum { ORT_FAIL = 1, ORT_INVALID_ARGUMENT = 2 };
enum { ORT_MEMORY_DEFAULT = 0, ORT_REQUIRED = 0, ORT_ATTRIBUTE_INT = 1 };

/* Element types. */
enum { ORT_FLOAT = 1, ORT_UINT8, ORT_INT8, ORT_UINT16, ORT_INT16, ORT_INT32, ORT_INT64 };
enum { ORT_STRING = 8, ORT_BOOL, ORT_FLOAT16, ORT_DOUBLE, ORT_UINT32, ORT_UINT64 };
enum { ORT_BFLOAT16 = 16 };

/* clang-format off */
#define UNUSED(from, to) void (*unused_##from[(to) - (from)])(void)
typedef struct OrtApi {
  OrtStatus* (*CreateStatus)(int code, const char* message);
  UNUSED(1, 26);
  OrtStatus* (*CreateCustomOpDomain)(const char* name, OrtCustomOpDomain** out);
  OrtStatus* (*CustomOpDomain_Add)(OrtCustomOpDomain* domain, const OrtCustomOp* op);
  OrtStatus* (*AddCustomOpDomain)(OrtSessionOptions* options, OrtCustomOpDomain* domain);
  UNUSED(29, 51);
  OrtStatus* (*GetTensorMutableData)(OrtValue* value, void** out);
  UNUSED(52, 57);
  OrtStatus* (*CreateTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo** out);
  OrtStatus* (*SetTensorElementType)(OrtTensorTypeAndShapeInfo* info, int type);
  OrtStatus* (*SetDimensions)(OrtTensorTypeAndShapeInfo* info, const int64_t* dims, size_t count);
  OrtStatus* (*GetTensorElementType)(const OrtTensorTypeAndShapeInfo* info, int* out);
  OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo* info, size_t* out);
  OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo* info, int64_t* dims, size_t count);
  OrtStatus* (*GetSymbolicDimensions)(const OrtTensorTypeAndShapeInfo* info, const char** names,
                                      size_t count);
  UNUSED(64, 65);
  OrtStatus* (*GetTensorTypeAndShape)(const OrtValue* value, OrtTensorTypeAndShapeInfo** out);
  UNUSED(66, 90);
  OrtStatus* (*KernelContext_GetInput)(const OrtKernelContext* context, size_t index,
                                       const OrtValue** out);
  OrtStatus* (*KernelContext_GetOutput)(OrtKernelContext* context, size_t index,
                                        const int64_t* dims, size_t count, OrtValue** out);
  UNUSED(92, 93);
  void (*ReleaseStatus)(OrtStatus* status);
  UNUSED(94, 99);
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo* info);
  UNUSED(100, 213);
  OrtStatus* (*CreateOp)(const OrtKernelInfo* info, const char* name, const char* domain,
                         int version, const char** constraints, const int* types,
                         int count_of_constraints, const void* attributes, int count_of_attributes,
                         int inputs, int outputs, OrtOp** out);
  OrtStatus* (*InvokeOp)(const OrtKernelContext* context, const OrtOp* op,
                         const OrtValue* const* inputs, int count_of_inputs,
                         OrtValue* const* outputs, int count_of_outputs);
  void (*ReleaseOp)(OrtOp* op);
  UNUSED(216, 237);
  OrtStatus* (*HasSessionConfigEntry)(const OrtSessionOptions* options, const char* key, int* out);
  OrtStatus* (*GetSessionConfigEntry)(const OrtSessionOptions* options, const char* key,
                                      char* value, size_t* bytes);
  UNUSED(239, 268);
  OrtStatus* (*ShapeInferContext_GetInputTypeShape)(const OrtShapeInferContext* context,
                                                    size_t index,
                                                    OrtTensorTypeAndShapeInfo** out);
  OrtStatus* (*ShapeInferContext_GetAttribute)(const OrtShapeInferContext* context,
                                               const char* name, const OrtOpAttr** out);
  OrtStatus* (*ShapeInferContext_SetOutputTypeShape)(const OrtShapeInferContext* context,
                                                     size_t index,
                                                     const OrtTensorTypeAndShapeInfo* info);
  OrtStatus* (*SetSymbolicDimensions)(OrtTensorTypeAndShapeInfo* info, const char** names,
                                      size_t count);
  OrtStatus* (*ReadOpAttr)(const OrtOpAttr* attribute, int type, void* data, size_t bytes,
                           size_t* out);
  UNUSED(273, 274);
  OrtStatus* (*KernelContext_ParallelFor)(const OrtKernelContext* context,
                                          void (*piece)(void* data, size_t i), size_t count,
                                          size_t batches, void* data);
} OrtApi;
#undef UNUSED
/* clang-format on */
_Static_assert(offsetof(OrtApi, KernelContext_ParallelFor) == 274 * sizeof(void*),
               "no place is left out");

typedef struct {
  const OrtApi* (*GetApi)(uint32_t version); /* NULL: it has not that version */
  const char* (*GetVersionString)(void);     /* such as "1.18.0" */
} OrtApiBase;

/* An operator of ours. What it has not is NULL. */
struct OrtCustomOp {
  uint32_t version;
  void* (*CreateKernel)(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info);
  const char* (*GetName)(const OrtCustomOp* op);
  const char* (*GetExecutionProviderType)(const OrtCustomOp* op);
  int (*GetInputType)(const OrtCustomOp* op, size_t index);
  size_t (*GetInputTypeCount)(const OrtCustomOp* op);
  int (*GetOutputType)(const OrtCustomOp* op, size_t index);
  size_t (*GetOutputTypeCount)(const OrtCustomOp* op);
  void (*KernelCompute)(void* kernel, OrtKernelContext* context);
  void (*KernelDestroy)(void* kernel);
  int (*GetInputCharacteristic)(const OrtCustomOp* op, size_t index);
  int (*GetOutputCharacteristic)(const OrtCustomOp* op, size_t index);
  int (*GetInputMemoryType)(const OrtCustomOp* op, size_t index);
  int (*variadic[4])(const OrtCustomOp* op);
  OrtStatus* (*CreateKernelV2)(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info,
                               void** kernel);
  OrtStatus* (*KernelComputeV2)(void* kernel, OrtKernelContext* context);
  OrtStatus* (*InferOutputShapeFn)(const OrtCustomOp* op, OrtShapeInferContext* context);
  int (*GetStartVersion)(const OrtCustomOp* op);
  int (*GetEndVersion)(const OrtCustomOp* op);
  size_t (*GetMayInplace)(int** inputs, int** outputs);
  void (*ReleaseMayInplace)(int* inputs, int* outputs);
  size_t (*GetAliasMap)(int** inputs, int** outputs);
  void (*ReleaseAliasMap)(int* inputs, int* outputs);
};

/* Returns from a function of ours with the error of one of theirs. */
#define ORT_TRY(call)                  \
  do {                                 \
    OrtStatus* status = (call);        \
    if (status != NULL) return status; \
  } while (0)

#endif
