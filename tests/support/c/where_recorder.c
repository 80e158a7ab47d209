/* Kernels of where() that write down what is asked of them, and select. The pool and the memory are
 * recorders, too: the pool begins a task inside of another one, as threads would at the same time. */
#undef malloc
#undef free
#include <stdlib.h>
#include <string.h>

#include "float_mode.h"
#include "pool.h"
#include "where_kernels.h"
#include "where_library.h"

enum { MOST_NOTES = 1 << 16 };

/* A call of a kernel. */
typedef struct {
  int32_t width, rows, number; /* of the table */
  int32_t task;                /* -1 outside of tasks */
  int64_t flags, m, n;
  int64_t data[TE_SELECT_OPERANDS];
} note;

note notes[MOST_NOTES];
int32_t count_of_notes, fails; /* the kernel that is to fail, from 1 */
int32_t wanted_threads, jobs, tasks_of_job, threads_of_job;
int32_t at_hand; /* the most threads that the pool gives */
int32_t team, team_of_job;
int32_t taken, given_back, is_short_of_memory, fences;
int32_t on_pool,
    threads_on_pool; /* whether calls have the pool of a caller; the most of its threads */
int32_t loops, pieces_of_loop, is_shut_down;

/* ---- the pool, memory and fences ---------------------------------------------------------------- */

int32_t mode_of_threads, modes_left; /* how threads round, in other bits than the caller */

static te_select_task task_of_job;
static void* data_of_job;
static int32_t next_task, running, this_task;

static int begin_task(void) {
  int32_t before = this_task;
  this_task = next_task++;
  ++running;
  int failed = task_of_job(this_task, tasks_of_job, data_of_job);
  --running;
  this_task = before;
  return failed;
}

te_select_crew te_select_crew_at_hand(int32_t wanted, int32_t most) {
  if (wanted > most) return (te_select_crew){0, 0};
  wanted_threads = wanted;
  return (te_select_crew){wanted < at_hand ? wanted : at_hand, team};
}

int te_select_parallel(te_select_task task, void* data, int32_t tasks, te_select_crew crew) {
  int failed = 0;
  ++jobs;
  task_of_job = task;
  data_of_job = data;
  tasks_of_job = tasks;
  threads_of_job = crew.threads;
  team_of_job = crew.team;
  uint64_t own = te_select_float_mode(), of_threads = own ^ (uint64_t)mode_of_threads;
  te_select_set_float_mode(of_threads);
  for (next_task = 0; next_task < tasks;) failed |= begin_task();
  modes_left += te_select_float_mode() != of_threads;
  te_select_set_float_mode(own);
  return failed;
}

/* The parallel-for of a caller. If it is shut down, it runs nothing. */
static void (*piece_of_loop)(void*, size_t);
static int32_t next_piece, running_pieces;

static void begin_piece(void) {
  ++running_pieces;
  piece_of_loop(data_of_job, (size_t)next_piece++);
  --running_pieces;
}

static void run_pieces(void* pool, void (*piece)(void*, size_t), size_t count, void* data) {
  loops += pool == &loops;
  piece_of_loop = piece;
  data_of_job = data;
  pieces_of_loop = (int32_t)count;
  for (next_piece = 0; next_piece < pieces_of_loop && !is_shut_down;) begin_piece();
}

void* take_memory(size_t size) {
  if (is_short_of_memory) return NULL;
  ++taken;
  return malloc(size);
}

void give_memory_back(void* memory) {
  given_back += memory != NULL;
  free(memory);
}

void count_fence(void) { ++fences; }

/* ---- kernels ------------------------------------------------------------------------------------ */

static int32_t run(int32_t width, int32_t rows, int32_t number, void* const* data, int64_t m,
                   int64_t n, int64_t flags) {
  int another_failed = running && running < threads_of_job && next_task < tasks_of_job;
  if (another_failed) another_failed = begin_task();
  if (running_pieces && next_piece < pieces_of_loop) begin_piece();
  select_all(width, rows, number, data, m, n);
  note* made = &notes[count_of_notes++ % MOST_NOTES];
  *made = (note){width, rows, number, running ? this_task : -1, flags, m, n, {0}};
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) made->data[i] = (int64_t)data[i];
  return another_failed || count_of_notes == fails;
}

/* ---- stages ------------------------------------------------------------------------------------- */

enum { A_STAGE = 2 }; /* rows of a note; its number is the kind of what is converted */

static int32_t note_stage(int32_t kind, void* const* data, int64_t n, int64_t flags) {
  note* made = &notes[count_of_notes++ % MOST_NOTES];
  int64_t from = (int64_t)data[0], to = (int64_t)data[1];
  int64_t mode = (int64_t)te_select_float_mode();
  *made = (note){0, A_STAGE, kind, running ? this_task : -1, flags, 1, n, {from, to, mode, 0}};
  return count_of_notes == fails;
}

static int32_t bytes_to_floats(void* const* data, const int64_t* sizes, int64_t flags) {
  for (int64_t i = 0; i < *sizes; ++i) ((float*)data[1])[i] = ((uint8_t*)data[0])[i];
  return note_stage(TE_SELECT_KIND_UINT8, data, *sizes, flags);
}

static int32_t words_to_truths(void* const* data, const int64_t* sizes, int64_t flags) {
  for (int64_t i = 0; i < *sizes; ++i) ((char*)data[1])[i] = ((int32_t*)data[0])[i] != 0;
  return note_stage(TE_SELECT_KIND_INT8 + 2, data, *sizes, flags);
}

/* Its size counts words. */
static int32_t bits_to_truths(void* const* data, const int64_t* sizes, int64_t flags) {
  for (int64_t i = 0; i < 64 * *sizes; ++i)
    ((char*)data[1])[i] = ((uint8_t*)data[0])[(i + flags) / 8] >> (i + flags) % 8 & 1;
  return note_stage(TE_SELECT_KIND_BITS, data, *sizes, flags);
}

const char* bits_of_cond;
int32_t l1, l2; /* of the machine; l1 may be another one's */

/* Selects with stages for the inputs whose kinds are told, as where_library.c does. */
static int32_t select_staged(const te_select_where_kernels* kernels,
                             const te_select_machine* machine, const te_select_where_call* call,
                             const int32_t* kinds, te_select_where_plan* plan) {
  te_select_stage stages[TE_SELECT_INPUTS] = {{0}};
  char elements[TE_SELECT_INPUTS][16], *memory[TE_SELECT_INPUTS] = {NULL};
  te_select_where_call made = *call;
  int32_t result = TE_SELECT_WHERE_DONE;
  for (int i = 0; i < TE_SELECT_INPUTS && result >= 0; ++i) {
    if (kinds[i] == TE_SELECT_AS_IS) continue;
    int is_bits = kinds[i] == TE_SELECT_KIND_BITS;
    stages[i].make = is_bits               ? bits_to_truths
                     : i == TE_SELECT_COND ? words_to_truths
                                           : bytes_to_floats;
    stages[i].item = te_select_item_of_kind(kinds[i]);
    stages[i].bits = is_bits ? bits_of_cond : NULL;
    if (te_select_make_once(&made, &stages[i], i, machine->l2 / 2, elements[i], &memory[i]))
      result = TE_SELECT_WHERE_FAILED;
  }
  if (result >= 0) result = te_select_where_walk(kernels, machine, &made, stages, NULL, plan);
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) give_memory_back(memory[i]);
  return result;
}

/* Selects, with kernels of rows or without, and with stages unless `kinds` is NULL. */
int32_t select_recorded(const te_select_where_call* call, int with_rows, const int32_t* kinds,
                        te_select_where_plan* plan) {
  static te_select_where_kernels kernels;
  static te_select_machine machine;
  memset(&kernels, 0, sizeof(kernels));
  if (!machine.max_threads) te_select_find_machine(&machine);
  if (l1) machine.l1 = l1;
  take_runs(&kernels);
  if (with_rows) take_rows(&kernels);
  count_of_notes = jobs = loops = fences = taken = given_back = wanted_threads = 0;
  l1 = (int32_t)machine.l1;
  l2 = (int32_t)machine.l2;
  if (kinds) return select_staged(&kernels, &machine, call, kinds, plan);
  const te_select_pool_of_caller pool = {run_pieces, &loops, threads_on_pool};
  return te_select_where_walk(&kernels, &machine, call, NULL, on_pool ? &pool : NULL, NULL);
}
