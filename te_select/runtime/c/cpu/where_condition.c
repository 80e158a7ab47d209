/* Conditions: what is compared, block by block, in the place of cond. */
#include <stdlib.h>
#include <string.h>

#include "where_plan.h"

enum { AT_ONCE = TE_SELECT_COMPARED_AT_ONCE, BLOCK = 1 << 12 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- the loops ---------------------------------------------------------------------------------- */

/* The axes along which a condition moves, in the order of out's memory, the largest steps first. */
typedef struct { int32_t count, axes[TE_SELECT_WHERE_RANK]; } order;

static int moves(const te_select_where_condition* asked, int32_t axis) {
  for (int32_t i = 0; i < asked->leaf_count; ++i) {
    const te_select_where_leaf* leaf = &asked->leaves[i];
    for (int k = 0; k < te_select_operands_of(leaf->relation); ++k) {
      if (leaf->operands[k].strides[axis]) return 1;
    }
  }
  return 0;
}

static order order_of(const te_select_where_call* call, const te_select_where_condition* asked) {
  const int64_t* out = call->strides[TE_SELECT_OUT];
  order found = {.count = 0};
  for (int32_t axis = 0; axis < call->ndim; ++axis) {
    if (call->shape[axis] == 1 || !moves(asked, axis)) continue;
    int32_t at = found.count++;
    for (; at > 0 && llabs(out[found.axes[at - 1]]) < llabs(out[axis]); --at) {
      found.axes[at] = found.axes[at - 1];
    }
    found.axes[at] = axis;
  }
  return found;
}

/* Numbers the elements of a condition as out lies in memory: cond has these for addresses. Returns how
 * many there are. */
static int64_t number_elements(te_select_where_call* call, const order* loops) {
  int64_t* strides = call->strides[TE_SELECT_COND];
  int64_t count = 1, first = TE_SELECT_REACH;
  for (int32_t axis = 0; axis < call->ndim; ++axis) strides[axis] = 0;
  for (int32_t k = loops->count - 1; k >= 0; --k) {
    int32_t axis = loops->axes[k];
    int is_backwards = call->strides[TE_SELECT_OUT][axis] < 0;
    strides[axis] = is_backwards ? -count : count;
    if (is_backwards) first += count * (call->shape[axis] - 1);
    count *= call->shape[axis];
  }
  call->data[TE_SELECT_COND] = (char*)(uintptr_t)first;
  return count;
}

/* Returns the bytes in memory. */
static int64_t merge_loops(const te_select_where_call* call, const order* loops, int64_t item,
                           const te_select_where_compared* asked, te_select_compared* made) {
  int64_t bytes = item;
  made->data = asked->data;
  made->count = 0;
  int is_number = 1;
  for (int32_t k = 0; k < loops->count; ++k) {
    int32_t axis = loops->axes[k], last = made->count - 1;
    int64_t extent = call->shape[axis], stride = asked->strides[axis];
    if (stride) bytes *= extent;
    is_number &= !stride;
    if (call->strides[TE_SELECT_OUT][axis] < 0) {
      made->data += stride * (extent - 1);
      stride = -stride;
    }
    if (last >= 0 && made->strides[last] == stride * extent) {
      extent *= made->extents[last--];
    }
    made->extents[last + 1] = extent;
    made->strides[last + 1] = stride;
    made->count = last + 2;
  }
  if (is_number) made->count = 0;
  return bytes;
}

/* ---- preparation -------------------------------------------------------------------------------- */

static int is_same(const te_select_where_call* call, const te_select_where_compared* one,
                   const char* data, const int64_t* strides) {
  int same = one->data == data;
  for (int32_t axis = 0; axis < call->ndim && same; ++axis) {
    same = call->shape[axis] == 1 || one->strides[axis] == strides[axis];
  }
  return same;
}

/* Whether something is read anyway: it is a side of the call, or an operand of a leaf before. */
static int is_read_anyway(const te_select_where_call* call, const te_select_where_condition* asked,
                          int32_t leaf, int operand) {
  const te_select_where_compared* own = &asked->leaves[leaf].operands[operand];
  for (int i = TE_SELECT_THEN; i < TE_SELECT_OUT; ++i) {
    if (is_same(call, own, call->data[i], call->strides[i])) return 1;
  }
  for (int32_t i = 0; i <= leaf; ++i) {
    const te_select_where_leaf* other = &asked->leaves[i];
    int32_t count = i < leaf ? te_select_operands_of(other->relation) : operand;
    for (int k = 0; k < count; ++k) {
      if (is_same(call, own, other->operands[k].data, other->operands[k].strides)) return 1;
    }
  }
  return 0;
}

static void make_leaf(const te_select_where_call* call, const order* loops, int32_t number,
                      te_select_condition* made) {
  const te_select_where_leaf* asked = &made->asked->leaves[number];
  te_select_leaf* leaf = &made->leaves[number];
  leaf->operands = te_select_operands_of(asked->relation);
  leaf->item = te_select_item_of_kind(asked->kind);
  for (int k = 0; k < leaf->operands; ++k) {
    int64_t bytes = merge_loops(call, loops, leaf->item, &asked->operands[k], &leaf->of[k]);
    if (!leaf->of[k].count || is_read_anyway(call, made->asked, number, k)) continue;
    made->bytes += bytes;
    made->item_bytes += leaf->item;
  }
}

/* Repeats every number, for so many elements. */
static void repeat_numbers(te_select_condition* made, int64_t elements) {
  int used = 0;
  for (int32_t i = 0; i < made->asked->leaf_count; ++i) {
    te_select_leaf* leaf = &made->leaves[i];
    int64_t bytes = least(elements * leaf->item, AT_ONCE);
    for (int k = 0; k < leaf->operands; ++k) {
      if (leaf->of[k].count) continue;
      char* row = leaf->of[k].row = made->numbers[used++];
      memcpy(row, leaf->of[k].data, (size_t)leaf->item);
      for (int64_t done = leaf->item; done < bytes; done *= 2) {
        memcpy(row + done, row, (size_t)least(done, bytes - done));
      }
    }
  }
}

/* The rows of booleans that steps need, with one that is not in use. */
static int32_t rows_of(const te_select_where_condition* asked) {
  int32_t rows = 1, used = 0;
  int has_spare = asked->step_count > 1;
  for (int32_t i = 0; i < asked->step_count; ++i) {
    used += asked->steps[i] >= 0 ? 1 : asked->steps[i] == TE_SELECT_NOT ? 0 : -1;
    if (used + has_spare > rows) rows = used + has_spare;
  }
  return rows;
}

int32_t te_select_make_condition(te_select_where_call* call,
                                 const te_select_where_comparisons* comparisons,
                                 const te_select_where_condition* asked,
                                 te_select_condition** result) {
  size_t rows = (size_t)(2 * asked->leaf_count) * AT_ONCE; /* if all of them are numbers */
  te_select_condition* made = *result = malloc(sizeof(te_select_condition) + rows);
  if (!made) return TE_SELECT_WHERE_FAILED;
  made->asked = asked;
  made->rows = rows_of(asked);
  made->item_bytes = 0;
  made->bytes = 2; /* one byte is a single cond, by which one side is read */
  order loops = order_of(call, asked);
  for (int32_t i = 0; i < asked->leaf_count; ++i) {
    const te_select_where_leaf* leaf = &asked->leaves[i];
    made->leaves[i].compare = te_select_kernel_at(&comparisons->of[leaf->relation][leaf->kind]);
    if (!made->leaves[i].compare) return TE_SELECT_WHERE_NO_KERNEL;
    make_leaf(call, &loops, i, made);
  }
  for (int8_t step = TE_SELECT_AND; step >= TE_SELECT_NOT; --step) {
    const te_select_where_run* of = comparisons->of[te_select_relation_of_step(step)];
    made->steps[TE_SELECT_AND - step] = te_select_kernel_at(&of[TE_SELECT_KIND_BOOL]);
    if (!made->steps[TE_SELECT_AND - step]) return TE_SELECT_WHERE_NO_KERNEL;
  }
  repeat_numbers(made, number_elements(call, &loops));
  return TE_SELECT_WHERE_DONE;
}

/* ---- comparing ---------------------------------------------------------------------------------- */

/* Where an element is. */
static const char* find(const te_select_compared* of, int64_t number) {
  const char* from = of->data;
  for (int32_t k = of->count - 1; k > 0; --k) {
    from += number % of->extents[k] * of->strides[k];
    number /= of->extents[k];
  }
  return from + number * of->strides[0];
}

/* How many elements of the innermost loop are left from one on. */
static int64_t count_left(const te_select_compared* of, int64_t number) {
  int64_t extent = of->extents[of->count - 1];
  return extent - (of->count > 1 ? number % extent : number);
}

static void gather(const te_select_compared* of, int64_t first, int64_t n, int64_t item, char* to) {
  for (int64_t count; n > 0; n -= count) {
    count = least(n, count_left(of, first));
    const char* from = find(of, first);
    te_select_copy(to, 0, item, from, 0, of->strides[of->count - 1], 1, count, item);
    first += count;
    to += count * item;
  }
}

static int compare(const te_select_leaf* leaf, int64_t first, int64_t n, char* to) {
  char gathered[2][AT_ONCE];
  int64_t most = AT_ONCE / leaf->item, count, beside[2] = {0, 0};
  for (int64_t end = first + n; first < end; first += count, to += count) {
    void* data[3];
    count = end - first;
    for (int k = 0; k < leaf->operands; ++k) {
      const te_select_compared* of = &leaf->of[k];
      int is_beside = of->count && of->strides[of->count - 1] == leaf->item;
      if (is_beside) beside[k] = count_left(of, first);
      count = least(count, beside[k] > most ? beside[k] : most);
    }
    for (int k = 0; k < leaf->operands; ++k) {
      const te_select_compared* of = &leaf->of[k];
      data[k] = !of->count ? of->row : beside[k] >= count ? (char*)find(of, first) : gathered[k];
      if (data[k] == gathered[k]) gather(of, first, count, leaf->item, gathered[k]);
    }
    data[leaf->operands] = to;
    if (leaf->compare(data, &count, 0)) return -1;
  }
  return 0;
}

char* te_select_compare_run(const te_select_condition* condition, const char* from, int64_t n,
                            char* rows, int64_t row) {
  int64_t first = (int64_t)((uintptr_t)from - (uintptr_t)TE_SELECT_REACH);
  char* at[TE_SELECT_LEAVES + 1] = {rows};
  int32_t used = 0, spare = condition->rows - 1;
  for (int32_t i = 0; i <= spare; ++i) at[i] = rows + i * row;
  for (int32_t i = 0; i < condition->asked->step_count; ++i) {
    int8_t step = condition->asked->steps[i];
    if (step >= 0) {
      if (compare(&condition->leaves[step], first, n, at[used++])) return NULL;
      continue;
    }
    used -= step != TE_SELECT_NOT;
    char* made = at[spare];
    void* of_both[] = {at[used - 1], at[used], made};
    void* of_one[] = {at[used - 1], made};
    int is_not = step == TE_SELECT_NOT;
    if (condition->steps[TE_SELECT_AND - step](is_not ? of_one : of_both, &n, 0)) return NULL;
    at[spare] = at[used - 1];
    at[used - 1] = made;
  }
  return at[0];
}

char* te_select_compare_block(const te_select_condition* condition, const te_select_block* block,
                              const char* from, char* rows, int64_t row) {
  int64_t m = block->row[TE_SELECT_COND] ? block->m : 1;
  int64_t n = block->col[TE_SELECT_COND] ? block->n : 1;
  int64_t step = block->row[TE_SELECT_COND];
  if (m == 1 || step == n) return te_select_compare_run(condition, from, m * n, rows, row);
  char* first = te_select_compare_run(condition, from, n, rows, row);
  for (int64_t i = 1; i < m && first; ++i) {
    if (!te_select_compare_run(condition, from + i * step, n, rows + i * n, row)) return NULL;
  }
  return first;
}

int te_select_compare_all(const te_select_condition* condition, int64_t elements, char* to) {
  int64_t block = least(elements, BLOCK);
  char* rows = malloc((size_t)(block * condition->rows));
  int failed = !rows;
  for (int64_t at = 0; at < elements && !failed; at += block) {
    int64_t n = least(block, elements - at);
    const char* found =
        te_select_compare_run(condition, (char*)(TE_SELECT_REACH + at), n, rows, block);
    if (found) memcpy(to + at, found, (size_t)n);
    failed = !found;
  }
  free(rows);
  return failed ? -1 : 0;
}
