/* The shape of out, for the optimizations of ONNX Runtime. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "where_call.h"
#include "where_op.h"

enum { NAME_BYTES = 40 };

/* An axis has an extent, or -1 and a name; without a name its extent is not known. */
typedef struct {
  int type;
  size_t count;
  int64_t extents[TE_SELECT_WHERE_RANK];
  const char* names[TE_SELECT_WHERE_RANK];
} known_shape;

/* Joins an axis of an input to what is known of an axis of out. Extents that contradict each other are
 * left to the call. */
static void join(int64_t* extent, const char** name, int64_t other, const char* its_name) {
  if (other == 1 || (*extent >= 0 && *extent != 1)) return;
  int differ = *extent < 0 && other < 0 && strcmp(*name, its_name);
  *extent = other;
  *name = differ || other >= 0 ? "" : its_name;
}

/* The inputs of which `te_select.onnxruntime.rewrite` knew that they are scalars, as bits. */
static int64_t find_scalars(const OrtApi* api, const OrtShapeInferContext* context) {
  const OrtOpAttr* attribute = NULL;
  int64_t scalars = 0;
  size_t bytes;
  OrtStatus* status = api->ShapeInferContext_GetAttribute(context, "scalars", &attribute);
  if (!status) {
    status = api->ReadOpAttr(attribute, ORT_ATTRIBUTE_INT, &scalars, sizeof(scalars), &bytes);
  }
  if (status) api->ReleaseStatus(status); /* a node that nobody has rewritten */
  return scalars;
}

/* Finds the shape of an input. */
static OrtStatus* look(const OrtApi* api, const OrtShapeInferContext* context, size_t index,
                       known_shape* found) {
  OrtTensorTypeAndShapeInfo* info;
  ORT_TRY(api->ShapeInferContext_GetInputTypeShape(context, index, &info));
  ORT_TRY(api->GetTensorElementType(info, &found->type));
  ORT_TRY(api->GetDimensionsCount(info, &found->count));
  if (found->count > TE_SELECT_WHERE_RANK) found->count = 0;
  ORT_TRY(api->GetDimensions(info, found->extents, found->count));
  return api->GetSymbolicDimensions(info, found->names, found->count);
}

static OrtStatus* tell(const OrtApi* api, const OrtShapeInferContext* context, known_shape* out) {
  OrtTensorTypeAndShapeInfo* info;
  ORT_TRY(api->CreateTensorTypeAndShapeInfo(&info));
  OrtStatus* status = api->SetTensorElementType(info, out->type);
  if (!status) status = api->SetDimensions(info, out->extents, out->count);
  if (!status) status = api->SetSymbolicDimensions(info, out->names, out->count);
  if (!status) status = api->ShapeInferContext_SetOutputTypeShape(context, 0, info);
  api->ReleaseTensorTypeAndShapeInfo(info);
  return status;
}

OrtStatus* te_select_infer_shape(const OrtCustomOp* op, OrtShapeInferContext* context) {
  /* ONNX Runtime asks the first operator only, whatever the element type. */
  const OrtApi* api = ((const te_select_where_op*)op)->api;
  static _Atomic uint64_t names_made;
  char made[TE_SELECT_WHERE_RANK][NAME_BYTES];
  known_shape inputs[TE_SELECT_INPUTS], out = {.count = 0};
  int64_t scalars = find_scalars(api, context);
  for (size_t i = 0; i < TE_SELECT_INPUTS; ++i) {
    ORT_TRY(look(api, context, i, &inputs[i]));
    /* ONNX Runtime shows a tensor of unknown rank as a scalar. */
    if (!inputs[i].count && !(scalars >> i & 1)) return NULL;
    if (inputs[i].count > out.count) out.count = inputs[i].count;
  }
  out.type = inputs[TE_SELECT_THEN].type;
  for (size_t at = 0; at < out.count; ++at) {
    out.extents[at] = 1;
    out.names[at] = "";
    for (size_t i = 0; i < TE_SELECT_INPUTS; ++i) {
      size_t missing = out.count - inputs[i].count;
      if (at < missing) continue;
      join(&out.extents[at], &out.names[at], inputs[i].extents[at - missing],
           inputs[i].names[at - missing]);
    }
    if (out.extents[at] >= 0 || *out.names[at]) continue;
    /* ONNX Runtime takes an axis without a name for one of -1 elements. */
    snprintf(made[at], NAME_BYTES, "te_select_%llu", (unsigned long long)names_made++);
    out.names[at] = made[at];
  }
  return tell(api, context, &out);
}
