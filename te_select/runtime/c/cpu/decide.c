/* How a call is run. */
#include "decide.h"

#include "pool.h"

/* A task takes 2 us or more. With 2^17 bytes, calls of te_select.where on 0.4 to 0.8 MB were up to
 * a tenth slower (Zen 5, two threads). */
enum { TASK_BYTES = 1 << 18, MOST_TASKS = 1 << 16 };

/* Whether the caller is in a parallel region of OpenMP, whose threads use the cores. The loader binds
 * it when this library is loaded, if a runtime is in the scope then. To look for runtimes later would
 * need the loader's lock, which another thread may hold until this call returns. */
extern int omp_in_parallel(void) __attribute__((weak, visibility("default")));

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The threads of a call, if so many pay. */
static int32_t count_threads(const te_select_machine* machine, int64_t paid, int32_t of_caller) {
  if (of_caller) return (int32_t)least(paid, least(of_caller, TE_SELECT_MOST_THREADS));
  int32_t most = machine->max_threads;
  int32_t at_hand = te_select_threads_at_hand((int32_t)least(paid, most), most);
  return at_hand > 1 && omp_in_parallel && omp_in_parallel() ? 1 : at_hand;
}

/* The tasks of a call, as many for each thread: with an odd number of tasks for two threads, calls
 * of 0.4 to 0.8 MB were up to a fifth slower. */
static int32_t count_tasks(int64_t moved, int32_t threads) {
  int64_t wanted = moved / TASK_BYTES;
  int64_t each = wanted > threads ? (wanted + threads - 1) / threads : 1;
  return (int32_t)least(each, MOST_TASKS / threads) * threads;
}

int64_t te_select_count_moved(const int64_t bytes[TE_SELECT_OPERANDS]) {
  int64_t then = bytes[TE_SELECT_THEN], other = bytes[TE_SELECT_ELSE];
  int64_t sides = bytes[TE_SELECT_COND] > 1 ? then + other : then > other ? then : other;
  return bytes[TE_SELECT_COND] + sides + bytes[TE_SELECT_OUT];
}

static int64_t chosen(int64_t knob, int64_t by_machine) {
  return knob == TE_SELECT_BY_MACHINE ? by_machine : knob;
}

te_select_manner te_select_decide(const te_select_machine* machine, const te_select_knobs* knobs,
                                  const int64_t bytes[TE_SELECT_OPERANDS],
                                  const te_select_cond* cond, int32_t of_caller) {
  const te_select_decisions* by_machine = &machine->decisions;
  te_select_manner how = {.flags = 0, .threads = 1, .tasks = 1};
  int64_t moved = te_select_count_moved(bytes);
  int64_t out = bytes[TE_SELECT_OUT];
  int64_t grain = chosen(knobs->bytes_per_thread, by_machine->bytes_per_thread);
  int is_large = moved >= te_select_large_from(grain);
  if (is_large) { /* a small call would spend a tenth of its time on this */
    how.threads = count_threads(machine, moved / grain, of_caller);
    how.tasks = count_tasks(moved, how.threads);
    int by_cond = knobs->skip == TE_SELECT_BY_MACHINE;
    int looks =
        by_cond ? te_select_looks(machine, cond, knobs->reads_cond_once != 0) : knobs->skip != 0;
    if (looks) how.flags |= TE_SELECT_SKIP;
  }
  int streams = knobs->stream_from > 0 && out >= knobs->stream_from;
  if (knobs->stream_from == TE_SELECT_BY_MACHINE) {
    int is_fill = (__int128)100 * (moved - out) < (__int128)by_machine->fill_reads * out;
    streams = (is_fill ? out : moved) >= te_select_streams_from(machine, is_fill, how.threads);
  }
  if (streams) how.flags |= TE_SELECT_STREAM;
  if (!is_large && !streams) how.flags |= TE_SELECT_SMALL;
  if (chosen(knobs->backwards, by_machine->backwards)) how.flags |= TE_SELECT_BACKWARDS;
  return how;
}
