/* Counts uses of the dynamic linker and of files: by loading, by the first call, and by others. */
#include <fcntl.h>
#include <link.h>
#include <stddef.h>

static int used;

void* dlopen(const char* path, int mode) {
  ++used;
  return NULL;
}
void* dlsym(void* restrict library, const char* restrict name) {
  ++used;
  return NULL;
}
int dl_iterate_phdr(int (*each)(struct dl_phdr_info*, size_t, void*), void* data) {
  ++used;
  return 0;
}
int open(const char* path, int flags, ...) {
  ++used;
  return -1;
}

#include "operands.h"

FILE* fopen(const char* restrict path, const char* restrict mode) {
  ++used;
  return NULL;
}

int main(void) {
  enum { ELEMENTS = 1 << 20 };
  operands own = make_operands(ELEMENTS);
  int loading = used;
  int failed = call_fails(&own, 1);
  int first = used - loading;
  for (int64_t n = 1; n <= ELEMENTS; n *= 4) failed |= call_fails(&own, n);
  int refused = SELECT(own.cond, NULL, own.else_, own.out, ELEMENTS);
  printf("%d %d %d %d %d\n", loading, first > 0, used - loading - first, failed, refused);
  return 0;
}
