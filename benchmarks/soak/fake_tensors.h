/* Random numbers and fake tensors for the driver: right ones, which are then spoilt. */
#ifndef SOAK_FAKE_TENSORS_H_
#define SOAK_FAKE_TENSORS_H_

#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

enum { COND, THEN, ELSE, OUT, OPERANDS, RANK = 8, NAMES = 8, MOST_ARGUMENTS = 6 };
enum { STRICT, BITS, TRY, MODES };
enum { REFUSE, TAKE, EITHER };
enum { MOST_BYTES = 1 << 16, MOST_ROOM = 4 * MOST_BYTES, WRITTEN = 0x5A };

/* A kernel, as kernels.h describes it. */
typedef struct {
  const char* name;
  TVMFFISafeCallType call[MODES];
  int (*plain)(void* const* data, const int64_t* sizes); /* the function of the header */
  uint8_t code, bits;
  int ndim[OPERANDS];
  int64_t dims[OPERANDS][RANK]; /* an extent, or -(k + 1) for the k-th name */
} spec;

/* ---- random numbers -------------------------------------------------------------------------- */

static uint64_t state, seed;
static int64_t number;

static uint64_t draw(uint64_t below) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (state * 0x2545F4914F6CDD1DULL >> 16) % below;
}

static int chance(int percent) { return (int)draw(100) < percent; }

static int64_t odd_number(void) {
  static const int64_t some[] = {0,         1,         2,         3,         -1,
                                 -2,        5,         64,        65,        255,
                                 256,       INT32_MAX, INT32_MIN, 1LL << 31, 1LL << 56,
                                 1LL << 57, 1LL << 62, INT64_MAX, INT64_MIN};
  return some[draw(sizeof(some) / sizeof(*some))];
}

/* ---- fake tensors ---------------------------------------------------------------------------- */

typedef struct {
  TVMFFIObject header;
  DLTensor tensor;
} object;

typedef struct {
  DLTensor t;
  int64_t *shape,
      *strides; /* of exactly as many as the tensor says, if it says something sensible */
  char* memory;
  int ours; /* its data may be touched */
  object* box;
} fake;

/* One more or one less, as far as there is one. */
static int64_t next_to(int64_t value) { return (int64_t)((uint64_t)value + (chance(50) ? 1 : -1)); }

static int64_t* listed(int32_t ndim, const int64_t* values, int known) {
  int count = ndim < 0 ? 0 : ndim > 66 ? 66 : ndim;
  int64_t* list = malloc(count * sizeof(int64_t));
  for (int i = 0; i < count; ++i) list[i] = i < known ? values[i] : odd_number();
  return list;
}

static void give_shape(fake* f, const int64_t* dims, int known) {
  free(f->shape), free(f->strides);
  f->t.shape = f->shape = listed(f->t.ndim, dims, known);
  int64_t strides[RANK + 1], step = 1;
  for (int i = known; i-- > 0;) {
    strides[i] = step;
    step = (int64_t)((uint64_t)step * (uint64_t)dims[i]);
  }
  f->strides = listed(f->t.ndim, strides, known);
  f->t.strides = chance(50) ? f->strides : NULL;
}

static void make_right(fake* f, const spec* k, int operand, int mode, const int64_t* sizes) {
  int64_t dims[RANK + 1];
  int n = k->ndim[operand];
  for (int i = 0; i < n; ++i) {
    int64_t dim = k->dims[operand][i];
    dims[i] = dim < 0 ? sizes[-(dim + 1)] : dim;
  }
  memset(f, 0, sizeof(*f));
  f->t.dtype = operand == COND ? (DLDataType){kDLBool, 8, 1} : (DLDataType){k->code, k->bits, 1};
  if (mode == BITS) {
    f->t.dtype.code = (uint8_t)draw(8);
    if (operand != COND && k->bits == 128 && chance(60)) { /* complex numbers as pairs */
      f->t.dtype.bits = 64;
      dims[n++] = 2;
    }
  }
  f->t.device = (DLDevice){kDLCPU, 0};
  f->t.ndim = n;
  give_shape(f, dims, n);
}

static void spoil(fake* f) {
  int n = f->t.ndim < 0 || f->t.ndim > RANK ? 0 : f->t.ndim;
  int at = n ? (int)draw(n) : 0;
  switch (draw(12)) {
    case 0:
      f->t.ndim = (int32_t)(chance(60) ? next_to(f->t.ndim) : odd_number());
      int64_t dims[RANK + 1];
      int known = n < f->t.ndim ? n : f->t.ndim < 0 ? 0 : f->t.ndim;
      memcpy(dims, f->shape, known * sizeof(int64_t));
      give_shape(f, dims, known);
      break;
    case 1:
    case 2:
      if (n && f->t.shape) f->shape[at] = chance(50) ? odd_number() : next_to(f->shape[at]);
      break;
    case 3:
      if (n) f->strides[at] = odd_number(), f->t.strides = f->strides;
      break;
    case 4:
      f->t.dtype.code = (uint8_t)draw(20);
      break;
    case 5:
      f->t.dtype.bits = (uint8_t)(chance(50) ? 8 << draw(5) : draw(256));
      break;
    case 6:
      f->t.dtype.lanes = (uint16_t)odd_number();
      break;
    case 7:
      f->t.device.device_type = (DLDeviceType)draw(18);
      break;
    case 8:
      f->t.device.device_id = (int32_t)odd_number();
      break;
    case 9:
      f->t.shape = NULL;
      break;
    case 10:
      f->t.byte_offset = chance(50) ? draw(64) : (uint64_t)odd_number();
      break;
    case 11:
      f->t.data = chance(50) ? (void*)1 : (void*)(uintptr_t)-(draw(64) + 1);
      break;
  }
}

#endif
