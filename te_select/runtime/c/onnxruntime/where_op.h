/* Where as operators of ONNX Runtime: one for each element type. */
#ifndef TE_SELECT_WHERE_OP_H_
#define TE_SELECT_WHERE_OP_H_

#include "operand_order.h"
#include "ort_api.h"

typedef struct {
  OrtCustomOp op; /* first: ONNX Runtime hands back its address */
  const OrtApi* api;
  int type;
  int32_t width;     /* bytes of an element; 0: strings, which ONNX Runtime's own Where selects */
  int first_version; /* of the domain's operators */
} te_select_where_op;

/* Makes the operator for an element type of so many bytes, from a version of its domain on. */
te_select_where_op te_select_make_where_op(const OrtApi* api, int type, int32_t width,
                                           int first_version);

/* Tells ONNX Runtime the shape of out, as far as it follows from what it knows of the inputs. */
OrtStatus* te_select_infer_shape(const OrtCustomOp* op, OrtShapeInferContext* context);

#endif
