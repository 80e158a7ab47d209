/* Calls kernels of a library on behalf of another process, which may be of another instruction set:
 * requests come on the standard input and are answered on the standard output. There is no tvm-ffi
 * here, but for the one function that raises errors. Numbers are little-endian, as everywhere. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

enum { GUARD = 4096, FILL = 0xA5, MAX_DIMS = 66 };
typedef int (*exported)(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

static char message[2048];

__attribute__((visibility("default"))) void TVMFFIErrorSetRaisedFromCStr(const char* kind,
                                                                         const char* text) {
  snprintf(message, sizeof(message), "%s: %s", kind, text);
}

static void take(void* into, size_t size) {
  if (size && fread(into, 1, size, stdin) != size) exit(0); /* the other side has ended */
}

static void give(const void* from, size_t size) { fwrite(from, 1, size, stdout); }

typedef struct {
  DLTensor tensor;
  int64_t shape[MAX_DIMS], size, offset;
  char *memory, *data;
} operand;

static void take_operand(operand* o) {
  int32_t head[3]; /* type code, bits, dims */
  take(head, sizeof(head));
  take(o->shape, (size_t)head[2] * 8);
  take(&o->size, 8);
  take(&o->offset, 8); /* of the address, from a multiple of GUARD on */
  o->memory = aligned_alloc(GUARD, ((size_t)o->size + 4 * GUARD) / GUARD * GUARD);
  memset(o->memory, FILL, (size_t)o->size + 3 * GUARD);
  o->data = o->memory + GUARD + o->offset;
  take(o->data, (size_t)o->size);
  DLDataType dtype = {(uint8_t)head[0], (uint8_t)head[1], 1};
  o->tensor = (DLTensor){o->data, {kDLCPU, 0}, head[2], dtype, o->shape, NULL, 0};
}

static int32_t touched(const operand* o) {
  for (char* at = o->memory; at < o->memory + o->size + 3 * GUARD; ++at) {
    if ((at < o->data || at >= o->data + o->size) && (unsigned char)*at != FILL) return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library) {
    fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: foreign_host LIBRARY");
    return 1;
  }
  for (;;) {
    int32_t length;
    char name[1024] = {0};
    take(&length, 4);
    take(name, (size_t)length);
    operand operands[4];
    TVMFFIAny args[4] = {0}, result = {0};
    for (int i = 0; i < 4; ++i) {
      take_operand(&operands[i]);
      args[i].type_index = kTVMFFIDLTensorPtr;
      args[i].v_ptr = &operands[i].tensor;
    }
    int32_t in_place; /* the input that out is, or -1 */
    take(&in_place, 4);
    operand* out = &operands[in_place < 0 ? 3 : in_place];
    operands[3].tensor.data = out->data;
    message[0] = 0;
    exported call = (exported)dlsym(library, name);
    if (!call) snprintf(message, sizeof(message), "AttributeError: %s", name);
    int32_t status = call ? call(NULL, args, 4, &result) : -1;
    int32_t stray = touched(out);
    int32_t said = (int32_t)strlen(message);
    give(&status, 4);
    give(&stray, 4);
    give(&said, 4);
    give(message, (size_t)said);
    give(out->data, (size_t)out->size);
    fflush(stdout);
    for (int i = 0; i < 4; ++i) free(operands[i].memory);
  }
}
