/* A library of where() whose kernels are in C: it is built in a second. With FAILS they fail, and with
 * LATE_ROWS those of rows are added later. */
#include "where_kernels.h"
#include "where_library.h"

#ifndef FAILS
#define FAILS 0
#endif
#ifndef LATE_ROWS
#define LATE_ROWS 0
#endif

static int32_t run(int32_t width, int32_t rows, int32_t number, void* const* data, int64_t m,
                   int64_t n, int64_t flags) {
  select_all(width, rows, number, data, m, n);
  return FAILS || flags < 0;
}

void te_select_where_fill(te_select_where_kernels* kernels, te_select_where_stages* stages,
                          int32_t level) {
  if (!level) take_runs(kernels);
  if (!level && !LATE_ROWS) take_rows(kernels);
}

static const char* const no_features[] = {NULL};
static const te_select_level levels[] = {{"x86-64", no_features}};
const te_select_library te_select_this_library = {1, levels, te_select_where_take_level};
const char te_select_manifest_text[] = "";
