/* The plug-in for ONNX Runtime, in the library of the kernels of where: Where as kernels of ONNX Runtime,
 * one for each width of an element. */
#pragma once

#include "ort_api.h"

enum { TE_SELECT_ORT_WIDTHS = 4 };

/* A kernel keeps nothing of a node, so all nodes have the same one. */
typedef struct {
  OrtKernelImpl kernel; /* first: ONNX Runtime hands back its address */
  const OrtApi* api;
  int32_t width; /* bytes of an element */
} te_select_ort_kernel;

/* Adds the kernels of a provider to its registry, which refers to them from then on. */
OrtStatus* te_select_ort_add_kernels(const OrtApi* api, const char* provider,
                                     te_select_ort_kernel kernels[TE_SELECT_ORT_WIDTHS],
                                     OrtKernelRegistry* registry);
