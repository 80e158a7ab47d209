/* Chains of Selects on contiguous data. */
#include "decide.h"
#include "pool.h"
#include "where_plan.h"

/* Of out: it stays in the first-level cache, where each step reads and writes it. Half and twice as
 * many take 1.1x the time (Emerald Rapids). */
enum { BLOCK_BYTES = 1 << 14 };

typedef struct {
  const te_select_where_run* runs; /* of the elements' width */
  const te_select_where_chain* of;
  int64_t flags;
} chain;

static int run_steps(const chain* c, int64_t at, int64_t count) {
  const te_select_where_chain* of = c->of;
  for (int32_t k = 0; k < of->count; ++k) {
    const te_select_where_step* step = &of->steps[k];
    void* data[TE_SELECT_OPERANDS] = {[TE_SELECT_OUT] = of->out + at * of->width};
    for (int i = 0; i < TE_SELECT_INPUTS; ++i) {
      int moves = step->moving >> (TE_SELECT_INPUTS - 1 - i) & 1;
      data[i] = step->data[i] + moves * at * te_select_item(i, of->width);
    }
    te_select_where_run run = te_select_kernel_at(&c->runs[step->moving]);
    if (run(data, &count, c->flags)) return -1;
  }
  return 0;
}

static int run_task(int32_t task, int32_t tasks, void* data) {
  const chain* c = data;
  int64_t block = BLOCK_BYTES / c->of->width;
  int64_t all = c->of->elements;
  int64_t blocks = te_select_ceil_div(all, block);
  int64_t end = te_select_least(all, te_select_share(blocks, task + 1, tasks) * block);
  for (int64_t at = te_select_share(blocks, task, tasks) * block; at < end; at += block) {
    if (run_steps(c, at, te_select_least(block, end - at))) return -1;
  }
  return 0;
}

int32_t te_select_run_chain(const te_select_where_kernels* kernels,
                            const te_select_machine* machine, const te_select_where_chain* of) {
  int64_t read = 0;
  int width = te_select_width_index(of->width);
  if (width >= TE_SELECT_WIDTHS || of->width != 1 << width ||
      !te_select_kernel_at(&kernels->runs[width][TE_SELECT_RUNS - 1]))
    return TE_SELECT_WHERE_NO_KERNEL;
  for (int32_t k = 0; k < of->count; ++k) {
    int moving = of->steps[k].moving; /* else of the later steps is out, which is in the cache */
    read += of->elements * (1 + of->width * ((moving >> 1 & 1) + (!k && moving & 1)));
  }
  const te_select_knobs knobs = {TE_SELECT_BY_MACHINE, 0, 0, TE_SELECT_BY_MACHINE, 1};
  const int64_t bytes[TE_SELECT_OPERANDS] = {read, 0, 0, of->elements * of->width};
  te_select_manner how = te_select_decide(machine, &knobs, bytes, NULL, 0);
  chain c = {kernels->runs[width], of, how.flags & ~TE_SELECT_SMALL};
  int failed = te_select_parallel(run_task, &c, how.tasks, how.crew);
  return failed ? TE_SELECT_WHERE_FAILED : TE_SELECT_WHERE_DONE;
}
