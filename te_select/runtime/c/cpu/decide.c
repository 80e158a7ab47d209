/* How a call is run. */
#include "decide.h"

/* A task takes 2 us or more. With 2^17 bytes, calls of te_select.where on 0.4 to 0.8 MB were up to
 * a tenth slower (Zen 5, two threads). */
enum { TASK_BYTES = 1 << 18, MOST_TASKS = 1 << 16 };

/* The threads of a call, if so many pay. */
static te_select_crew choose_crew(const te_select_machine* machine, int64_t paid,
                                  int32_t of_caller) {
  int32_t most = of_caller ? of_caller : machine->max_threads;
  int32_t wanted = (int32_t)te_select_least(paid, te_select_least(most, TE_SELECT_MOST_THREADS));
  return of_caller ? (te_select_crew){wanted, 0} : te_select_crew_at_hand(wanted, most);
}

/* The tasks of a call, as many for each thread: with an odd number of tasks for two threads, calls
 * of 0.4 to 0.8 MB were up to a fifth slower. */
static int32_t count_tasks(int64_t moved, int32_t threads) {
  int64_t wanted = moved / TASK_BYTES;
  int64_t each = wanted > threads ? te_select_ceil_div(wanted, threads) : 1;
  return (int32_t)te_select_least(each, MOST_TASKS / threads) * threads;
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
  te_select_manner how = {.flags = 0, .crew = {1, 0}, .tasks = 1};
  int64_t moved = te_select_count_moved(bytes);
  int64_t out = bytes[TE_SELECT_OUT];
  int64_t grain = chosen(knobs->bytes_per_thread, by_machine->bytes_per_thread);
  int is_large = moved >= te_select_large_from(grain);
  if (is_large) { /* a small call would spend a tenth of its time on this */
    how.crew = choose_crew(machine, moved / grain, of_caller);
    how.tasks = count_tasks(moved, how.crew.threads);
    int by_cond = knobs->skip == TE_SELECT_BY_MACHINE;
    int looks =
        by_cond ? te_select_looks(machine, cond, knobs->reads_cond_once != 0) : knobs->skip != 0;
    if (looks) how.flags |= TE_SELECT_SKIP;
  }
  int streams = knobs->stream_from > 0 && out >= knobs->stream_from;
  if (knobs->stream_from == TE_SELECT_BY_MACHINE) {
    int is_fill = (__int128)100 * (moved - out) < (__int128)by_machine->fill_reads * out;
    streams = (is_fill ? out : moved) >= te_select_streams_from(machine, is_fill, how.crew.threads);
  }
  if (streams) how.flags |= TE_SELECT_STREAM;
  if (!is_large && !streams) how.flags |= TE_SELECT_SMALL;
  if (chosen(knobs->backwards, by_machine->backwards)) how.flags |= TE_SELECT_BACKWARDS;
  return how;
}
