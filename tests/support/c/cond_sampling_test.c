/* What is decided of a cond, and how often it is looked at. */
#include "cond_sampling.h"
int looked;
int look_and_count(const void* one, const void* other, size_t length) {
  ++looked;
  return __builtin_memcmp(one, other, length);
}
int looks(int decision, const char* data, int64_t run, int count, const int64_t* extent,
          const int64_t* stride, int once, int64_t width, int in_place) {
  te_select_machine machine = {.decisions = {.skip = decision}};
  te_select_loop loops[64];
  const te_select_cond cond = {data, run, count, loops, in_place, width};
  for (int k = 0; k < count; ++k) {
    loops[k].extent = extent[k];
    loops[k].stride[TE_SELECT_COND] = stride[k];
  }
  return te_select_looks(&machine, &cond, once);
}
