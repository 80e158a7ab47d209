/* Calls the exported functions of a library with fake tensors, and its plain functions with pointers
 * and sizes, under ASan and UBSan.
 *
 * Every call begins with right arguments, of which some are then spoilt. A reference of the rule
 * says whether the call must be taken. The kernels are stand-ins: they read and write every byte
 * that they may. `kernels.h` describes them. Arguments: a seed and how many calls. */
#include <sanitizer/common_interface_defs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

#include "fake_tensors.h"

/* ---- stand-ins for kernels -------------------------------------------------------------------- */

static char* given[OPERANDS];
static int64_t bytes[OPERANDS];
static _Atomic int ran;
static int may_touch;

static int32_t run(char* cond, char* then, char* else_, char* out, int64_t task, int64_t tasks) {
  char* now[] = {cond, then, else_, out};
  unsigned sum = 0;
  if (!task) {
    memcpy(given, now, sizeof(now));
    ++ran;
  }
  for (int i = 0; i < OPERANDS && may_touch; ++i) {
    for (int64_t at = bytes[i] * task / tasks; at < bytes[i] * (task + 1) / tasks; ++at) {
      if (i == OUT) now[i][at] = WRITTEN;
      else sum += (unsigned char)now[i][at];
    }
  }
  volatile unsigned sink = sum;
  (void)sink;
  return 0;
}

#include "kernels.h"

/* ---- the rule -------------------------------------------------------------------------------- */

/* Elements of a tensor that has the right element type and shape, else -1; -2 where it has none,
 * but the other extents are beyond what is supported. */
static int64_t elements(const spec* k, int operand, int mode, const DLTensor* t, int64_t* sizes) {
  uint8_t bits = operand == COND ? 8 : k->bits, code = operand == COND ? (uint8_t)kDLBool : k->code;
  int pair = mode == BITS && bits == 128 && t->dtype.bits == 64;
  if (t->dtype.lanes != 1 || (t->dtype.bits != bits && !pair)) return -1;
  if (mode != BITS && t->dtype.code != code) return -1;
  int n = k->ndim[operand];
  int empty = 0;
  if (t->ndim != n + pair || (t->ndim && !t->shape) || (pair && t->shape[n] != 2)) return -1;
  __int128 count = 1;
  for (int i = 0; i < n; ++i) {
    int64_t dim = k->dims[operand][i];
    int64_t* size = dim < 0 ? &sizes[-(dim + 1)] : &dim;
    if (*size < 0) *size = t->shape[i];
    if (t->shape[i] != *size || *size < 0) return -1;
    if (!*size) empty = 1;
    else if (count <= INT64_MAX / 64) count *= *size;
  }
  if (count > INT64_MAX / 64) return empty ? -2 : -1;
  return empty ? 0 : (int64_t)count;
}

static int is_compact(const DLTensor* t) {
  int64_t step = 1;
  for (int i = t->ndim; t->strides && i-- > 0; step *= t->shape[i]) {
    if (t->shape[i] != 1 && t->strides[i] != step) return 0;
  }
  return 1;
}

static int judged(const spec* k, int mode, fake* const* f, int64_t* counts) {
  int64_t sizes[NAMES];
  int answer = TAKE;
  memset(sizes, -1, sizeof(sizes));
  for (int i = 0; i < OPERANDS; ++i) {
    if (!f[i]) return REFUSE;
    const DLTensor* t = &f[i]->t;
    int device = t->device.device_type;
    if (device != kDLCPU && device != kDLCUDAHost && device != kDLROCMHost) return REFUSE;
    counts[i] = elements(k, i, mode, t, sizes);
    if (counts[i] == -1) return REFUSE;
    if (counts[i] == -2) answer = EITHER, counts[i] = 0;
    bytes[i] = counts[i] * (i == COND ? 1 : k->bits / 8);
    if (!counts[i]) continue;
    unsigned __int128 end = (unsigned __int128)(uintptr_t)t->data + t->byte_offset + bytes[i];
    if (!t->data || end > UINT64_MAX || !is_compact(t)) return REFUSE;
  }
  uint64_t out = (uint64_t)(uintptr_t)f[OUT]->t.data + f[OUT]->t.byte_offset;
  for (int i = 0; i < OUT && counts[OUT]; ++i) {
    uint64_t in = (uint64_t)(uintptr_t)f[i]->t.data + f[i]->t.byte_offset;
    if (in + bytes[i] <= out || out + bytes[OUT] <= in) continue;
    if (i == COND || in != out || counts[i] != counts[OUT]) return REFUSE;
  }
  return answer;
}

/* ---- one call -------------------------------------------------------------------------------- */

static void place(fake* f, int64_t size, fake* beside, int64_t size_beside) {
  if (f->t.data) return;                /* spoilt */
  if (f->t.byte_offset >= MOST_BYTES) { /* leads anywhere, and is refused unless there is nothing */
    f->t.data = f->memory = malloc(1);
    return;
  }
  int64_t offset = (int64_t)f->t.byte_offset;
  if (beside && !beside->memory && !beside->t.data && beside->t.byte_offset < MOST_BYTES) {
    /* One memory for both, which end a few bytes from each other. */
    int64_t apart = chance(50) ? 0 : (int64_t)draw(20);
    int64_t other = (int64_t)beside->t.byte_offset;
    char* whole = f->memory = calloc(1, (size_t)(size + size_beside + offset + other + 20));
    char* first = whole + (offset > other ? offset : other);
    f->t.data = first - offset;
    beside->t.data = first + apart - other;
    f->ours = beside->ours = 1;
    return;
  }
  f->memory = calloc(1, (size_t)(size + offset));
  f->t.data = f->memory;
  f->ours = 1;
}

static int64_t room(const DLTensor* t, int operand, const spec* k) {
  int64_t size = operand == COND ? 1 : k->bits / 8;
  for (int i = 0; t->shape && i < t->ndim && i < RANK + 1; ++i) {
    if (t->shape[i] < 0 || t->shape[i] > MOST_ROOM || size * t->shape[i] > MOST_ROOM) return 1;
    size *= t->shape[i];
  }
  return size;
}

static void fail(const char* what, const spec* k, int mode, const char* said) {
  printf("call %lld of seed %llu, %s, mode %d: %s%s\n", (long long)number, (unsigned long long)seed,
         k->name, mode, what, said);
  exit(1);
}

static void check_error(const spec* k, int mode) {
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  if (!error) fail("it refused and raised nothing", k, mode, "");
  TVMFFIErrorCell* cell = (TVMFFIErrorCell*)((char*)error + sizeof(TVMFFIObject));
  int known = !strncmp(cell->kind.data, "TypeError", cell->kind.size) ||
              !strncmp(cell->kind.data, "ValueError", cell->kind.size);
  if (!known) fail("it refused with the error ", k, mode, cell->message.data);
  for (size_t i = 0; i < cell->message.size; ++i) {
    char c = cell->message.data[i];
    if (c < ' ' || c > '~') fail("its message is not one line: ", k, mode, cell->message.data);
  }
  TVMFFIObjectDecRef(error);
}

/* Gives all operands memory. Out and one of the others may share it. */
static void place_all(fake* fakes, const spec* k) {
  int partner = chance(25) ? (int)draw(OUT) : OPERANDS;
  for (int i = OUT; i >= 0; --i) {
    int shared = i == OUT && partner != OPERANDS;
    place(&fakes[i], room(&fakes[i].t, i, k), shared ? &fakes[partner] : NULL,
          shared ? room(&fakes[partner].t, partner, k) : 0);
  }
}

/* Decides whether the kernel may touch the memory of a call, and that it has not run yet. */
static void prepare(const fake* fakes, int expected) {
  may_touch = 1;
  for (int i = 0; i < OPERANDS; ++i) may_touch &= fakes[i].ours && fakes[i].t.data;
  for (int i = 0; i < OPERANDS && expected; ++i) may_touch &= bytes[i] <= MOST_BYTES;
  ran = 0;
}

/* Checks what the kernel was given and has done, and frees the memory. */
static void finish(fake* fakes, const spec* k, int mode, int taken, const int64_t* counts) {
  if (ran != (taken && counts[OUT] > 0))
    fail("the kernel ran a wrong number of times", k, mode, "");
  for (int i = 0; i < OPERANDS && ran; ++i) {
    if ((uintptr_t)given[i] != (uintptr_t)fakes[i].t.data + fakes[i].t.byte_offset)
      fail("the kernel got another address", k, mode, "");
  }
  for (int64_t i = 0; i < bytes[OUT] && ran && may_touch; ++i) {
    if (given[OUT][i] != WRITTEN) fail("a part of out was not written", k, mode, "");
  }
  for (int i = 0; i < OPERANDS; ++i) {
    free(fakes[i].shape), free(fakes[i].strides), free(fakes[i].memory), free(fakes[i].box);
  }
}

static int call_with_tensors(void) {
  const spec* k = &specs[draw(sizeof(specs) / sizeof(*specs))];
  int mode = (int)draw(MODES);
  int arguments = chance(98) ? OPERANDS : (int)draw(MOST_ARGUMENTS + 1);
  int64_t sizes[NAMES], counts[OPERANDS];
  for (int i = 0; i < NAMES; ++i) sizes[i] = chance(3) ? odd_number() : (int64_t)draw(20);
  fake fakes[OPERANDS], *f[OPERANDS];
  for (int i = 0; i < OPERANDS; ++i) make_right(f[i] = &fakes[i], k, i, mode, sizes);
  for (int left = chance(50) ? 0 : 1 + (int)draw(2); left > 0; --left) spoil(f[draw(OPERANDS)]);
  if (chance(3)) fakes[draw(OPERANDS)].t.data = (void*)8; /* some of it may have no element */
  place_all(fakes, k);
  if (chance(3)) fakes[draw(OPERANDS)].t.data = NULL;

  TVMFFIAny* args = calloc((size_t)(arguments ? arguments : 1), sizeof(TVMFFIAny));
  for (int i = 0; i < arguments; ++i) {
    fake* one = &fakes[i % OPERANDS];
    args[i].type_index = kTVMFFIDLTensorPtr;
    args[i].v_ptr = &one->t;
    if (chance(30) && i < OPERANDS) {
      one->box = calloc(1, sizeof(object));
      one->box->tensor = one->t;
      args[i].type_index = kTVMFFITensor;
      args[i].v_obj = &one->box->header;
    } else if (chance(2)) {
      args[i].type_index = chance(50) ? kTVMFFIDLTensorPtr : (int32_t)draw(80);
      if (args[i].type_index == kTVMFFITensor) args[i].type_index = kTVMFFINone;
      args[i].v_ptr = NULL;
      if (i < OPERANDS) f[i] = NULL;
    }
  }
  int expected = arguments == OPERANDS ? judged(k, mode, f, counts) : REFUSE;
  prepare(fakes, expected);
  TVMFFIAny result;
  memset(&result, 0xEE, sizeof(result));
  int code = k->call[mode](NULL, args, arguments, &result);
  int taken = mode == TRY ? result.type_index == kTVMFFIBool && result.v_int64 == 1 : code == 0;

  if (code != 0 && (code != -1 || mode == TRY)) fail("it returned another code", k, mode, "");
  int is_told = mode != STRICT && taken;
  if (result.type_index != (is_told ? kTVMFFIBool : kTVMFFINone))
    fail("it returned another value", k, mode, "");
  if (code) check_error(k, mode);
  if (expected != EITHER && taken != (expected == TAKE))
    fail(taken ? "it took what is wrong" : "it refused what is right", k, mode, "");
  finish(fakes, k, mode, taken, counts);
  free(args);
  return taken;
}

enum { PLAIN = MODES };
const char* te_select_error(void);

/* In C, pointers to elements are aligned as these are; a complex number as its parts. */
static int is_aligned(const spec* k, int operand, const DLTensor* t) {
  int width = operand == COND ? 1 : k->bits / (k->code == kDLComplex ? 16 : 8);
  return ((uintptr_t)t->data + t->byte_offset) % (uintptr_t)width == 0;
}

static int call_plain(void) {
  const spec* k = &specs[draw(sizeof(specs) / sizeof(*specs))];
  int64_t sizes[NAMES], counts[OPERANDS];
  for (int i = 0; i < NAMES; ++i) sizes[i] = chance(5) ? odd_number() : (int64_t)draw(20);
  fake fakes[OPERANDS], *f[OPERANDS];
  for (int i = 0; i < OPERANDS; ++i) {
    make_right(f[i] = &fakes[i], k, i, STRICT, sizes);
    fakes[i].t.strides = NULL;
    if (chance(20)) fakes[i].t.byte_offset = draw(64);
  }
  if (chance(5)) fakes[draw(OPERANDS)].t.data = (void*)8;
  if (chance(5)) fakes[draw(OPERANDS)].t.data = (void*)(uintptr_t)-(draw(64) + 64);
  place_all(fakes, k);
  void* data[OPERANDS];
  int nobody = chance(10) ? (int)draw(OPERANDS) : OPERANDS;
  for (int i = 0; i < OPERANDS; ++i) {
    if (i == nobody) fakes[i].t.data = NULL, fakes[i].t.byte_offset = 0;
    data[i] = (void*)((uintptr_t)fakes[i].t.data + fakes[i].t.byte_offset);
  }
  int expected = judged(k, STRICT, f, counts);
  for (int i = 0; i < OPERANDS && expected != REFUSE; ++i) {
    if (counts[i] && !is_aligned(k, i, &fakes[i].t)) expected = REFUSE;
  }
  prepare(fakes, expected);
  int status = k->plain(data, sizes);
  if (status != 0 && status != 1) fail("it returned another status", k, PLAIN, te_select_error());
  if (status && !*te_select_error()) fail("it refused and said nothing", k, PLAIN, "");
  if (expected != EITHER && !status != (expected == TAKE))
    fail(status ? "it refused what is right: " : "it took what is wrong", k, PLAIN,
         status ? te_select_error() : "");
  finish(fakes, k, PLAIN, !status, counts);
  return !status;
}

static void tell(void) {
  fprintf(stderr, "in call %lld of seed %llu\n", (long long)number, (unsigned long long)seed);
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  __sanitizer_set_death_callback(tell);
  seed = strtoull(arguments[1], NULL, 10);
  state = (seed + 1) * 0x9E3779B97F4A7C15ULL;
  int64_t calls = strtoll(arguments[2], NULL, 10);
  int64_t taken = 0;
  for (number = 0; number < calls; ++number)
    taken += chance(50) ? call_plain() : call_with_tensors();
  printf("%lld %lld\n", (long long)taken, (long long)(calls - taken));
  return 0;
}
