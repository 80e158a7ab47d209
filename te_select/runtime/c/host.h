/* The host half of exported libraries, below the folders of the kinds of machines. This is what the
 * generated stubs tell the argument checks about one kernel, and what the checks share. */
#pragma once

#include <stdint.h>
#include <tvm/ffi/c_api.h>

#include "operand_order.h"

enum { TE_SELECT_MAX_DIMS = 64 };
enum { TE_SELECT_MAX_NAMES = 3 * TE_SELECT_MAX_DIMS };
enum { TE_SELECT_HOST = -1 }; /* the device of memory of the CPU */

typedef struct {
  int32_t ndim;
  const int64_t* dims; /* >= 0 is an extent; -(k + 1) is the k-th name */
} te_select_shape;

/* The memory that a kernel of a device takes. A kind of machine defines one. */
typedef struct {
  const char* name; /* for messages */
  DLDeviceType types[2];
} te_select_device;

typedef struct {
  const char* name;
  uint8_t code; /* DLDataTypeCode of then, else and out */
  uint8_t bits;
  int32_t num_names;
  const char* const* names;
  te_select_shape shapes[TE_SELECT_OPERANDS]; /* cond, then, else, out */
  const te_select_device* device;             /* NULL: it takes memory of the CPU */
} te_select_kernel;

typedef struct {
  char* data;
  int64_t count; /* elements */
  int64_t bytes;
  int32_t device; /* its number, or TE_SELECT_HOST */
} te_select_memory;

/* How an exported function takes its arguments: exactly the element types, or any type of their
 * width; the second also returns true. In the third mode it tries: it returns true if it took them,
 * and nothing if it refused. In the fourth, the arguments are those of a plain C function, which
 * keeps the error. */
typedef enum { TE_SELECT_STRICT, TE_SELECT_BITS, TE_SELECT_TRY, TE_SELECT_PLAIN } te_select_mode;

/* Checks the arguments (cond, then, else, out) and finds their memory and the size of every named
 * dim. A device's kernel takes inputs of rank 0 from memory of the CPU, too. Returns 1 if there is something
 * to compute, 0 if out has no element, and -1 if it refuses them. Then an error is raised, except
 * for TE_SELECT_TRY. */
int te_select_check(const te_select_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                    TVMFFIAny* result, te_select_mode mode, int64_t* sizes,
                    te_select_memory* operands);

/* The return value of an exported function of this mode if its arguments were refused. */
static inline int te_select_refused(te_select_mode mode) { return mode == TE_SELECT_TRY ? 0 : -1; }

/* A function that a library exports, in the calling convention of tvm-ffi. */
#define TE_SELECT_EXPORT(name)                                                           \
  TVM_FFI_DLL_EXPORT int __tvm_ffi_##name(                                               \
      __attribute__((unused)) void* self, __attribute__((unused)) const TVMFFIAny* args, \
      __attribute__((unused)) int32_t num_args, TVMFFIAny* result)

/* Sets what an exported function returns. */
static inline void te_select_return_int(TVMFFIAny* result, int64_t value) {
  *result = (TVMFFIAny){.type_index = kTVMFFIInt, .v_int64 = value};
}

/* The tensor of an argument; NULL if it is none. */
static inline const DLTensor* te_select_tensor_of(const TVMFFIAny* arg) {
  if (arg->type_index == kTVMFFITensor) {
    return (const DLTensor*)((const char*)arg->v_obj + sizeof(TVMFFIObject));
  }
  return arg->type_index == kTVMFFIDLTensorPtr ? (const DLTensor*)arg->v_ptr : NULL;
}

/* The text of the library's manifest, in its ELF note. */
extern const char te_select_manifest_text[] __attribute__((visibility("hidden")));

/* A call, and how its arguments are taken. */
typedef struct {
  const te_select_kernel* kernel; /* NULL: messages do not begin with "kernel: " */
  te_select_mode mode;
  const char* const* names; /* of the operands, if they are not cond, then, else_ and out */
} te_select_request;

/* A call whose arguments were taken: from then on errors are raised in TE_SELECT_TRY, too. */
static inline te_select_request te_select_taken(const te_select_kernel* kernel,
                                                te_select_mode mode) {
  return (te_select_request){.kernel = kernel,
                             .mode = mode == TE_SELECT_TRY ? TE_SELECT_STRICT : mode};
}

/* Raises an error of a Python kind such as "ValueError"; returns -1. A call of a plain function keeps
 * the error instead; TE_SELECT_TRY drops it. The message names the operand, unless that is negative.
 * Cold, so that the code of refusals lies apart from that of calls. */
int te_select_fail(const te_select_request* r, int operand, const char* kind, const char* format,
                   ...) __attribute__((format(printf, 4, 5), cold));

/* What a plain function returns: 0 or a te_select_status for what the call returned. */
int te_select_status_of(int returned);

/* A function of tvm-ffi if the process has it; the library runs without it, too. */
void* te_select_tvm_ffi(const char* name);
