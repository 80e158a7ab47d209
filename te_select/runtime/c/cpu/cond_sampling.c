/* Looks at a few places of cond, to decide whether spans are to look at every block of it. */
#include "cond_sampling.h"

#include <string.h>

/* Places that are tested. They are 16 cache misses at once, in calls of at least half a megabyte. */
enum { SPOTS = 16 };

/* The least elements of one value for which a look pays, by the width of an element: masks in such
 * blocks were selected at 1.02 to 1.17 times the speed with it (Zen 5; with blocks of 64 elements of
 * two bytes, and of 512 of one byte, at 0.95). */
static int64_t worth(int64_t width) { return width == 1 ? 4096 : width == 2 ? 512 : 64; }

/* In place, what is left alone is a vector. With 3 % of the elements changed at random, the speed with
 * a look was 0.95 to 1.00; with 1 %, 1.4 to 1.7 (Zen 4). */
enum { VECTOR_BYTES = 64 };

/* A place among `extent`, different for each of the loops, so that no diagonal is followed. */
static int64_t place(int32_t spot, int32_t loop, int64_t extent) {
  int64_t at = (spot * (4 * loop + 1) + loop) % SPOTS;
  return (int64_t)((__int128)extent * at / SPOTS);
}

static int is_uniform(const te_select_cond* cond, int32_t spot, int64_t length) {
  const char* at = cond->data;
  for (int32_t k = 0; k < cond->count; ++k) {
    const te_select_loop* loop = &cond->loops[k];
    at += place(spot, k, loop->extent) * loop->stride[TE_SELECT_COND];
  }
  at += place(spot, cond->count, cond->run / length) * length;
  return !memcmp(at, at + 1, (size_t)length - 1);
}

int te_select_looks(const te_select_machine* machine, const te_select_cond* cond, int reads_once) {
  int64_t decision = machine->decisions.skip;
  if (decision != TE_SELECT_SKIP_IN_RUNS) return decision == TE_SELECT_SKIP_ALWAYS;
  if (!reads_once) return 0;
  if (!cond->data) return 1; /* its values are not known yet */
  int64_t length = cond->in_place ? VECTOR_BYTES / cond->width : worth(cond->width);
  if (length > cond->run) length = cond->run;
  int32_t uniform = 0, spot = 0;
  /* Until the rest cannot change the answer. */
  while (2 * uniform < SPOTS && 2 * (spot - uniform) <= SPOTS) {
    uniform += is_uniform(cond, spot++, length);
  }
  return 2 * uniform >= SPOTS;
}
