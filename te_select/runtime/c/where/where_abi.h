/* Select for operands of any shapes and strides, by a family of kernels for the innermost loops. */
#pragma once

#include <stdint.h>

#include "where_call.h"

/* Of the structures below and of te_select_where_call. Libraries of another version
 * that is taken convert nothing. */
enum { TE_SELECT_WHERE_VERSION = 6, TE_SELECT_WHERE_OLDEST = 5 };
_Static_assert(TE_SELECT_WHERE_RANK == 64, "another layout: both versions rise; messages name 64");
enum { TE_SELECT_WIDTHS = 5, TE_SELECT_RUNS = 8, TE_SELECT_ROWS = 27 }; /* 1, 2, 4, 8, 16 bytes */

/* The first index of the kernels of a width, a power of two. */
static inline int te_select_width_index(int32_t width) { return __builtin_ctz((unsigned)width); }

/* A kernel: data of cond, then, else and out; sizes; flags. As te_select_run of host_cpu.h. */
typedef int32_t (*te_select_where_run)(void* const data[TE_SELECT_OPERANDS], const int64_t* sizes,
                                       int64_t flags);

/* The kernels. The first index is the width: 0 to 4 for 1, 2, 4, 8 and 16 bytes.
 *
 * runs: one loop of n. The second index is the sum over the operands that move: cond 4, then 2,
 * else 1.
 *
 * rows: m rows of n. The second index has three digits of base 3, for cond, then and else: 0 moves
 * along both loops, 1 along m only, 2 along n only. */
typedef struct {
  te_select_where_run runs[TE_SELECT_WIDTHS][TE_SELECT_RUNS];
  te_select_where_run rows[TE_SELECT_WIDTHS][TE_SELECT_ROWS];
} te_select_where_kernels;

/* NumPy's types of numbers, in the order of operator/stages.py, and booleans that are stored as bits. */
enum {
  TE_SELECT_KIND_BOOL,
  TE_SELECT_KIND_INT8,
  TE_SELECT_KIND_UINT8 = 5,
  TE_SELECT_KIND_FLOAT16 = 9,
  TE_SELECT_KIND_COMPLEX64 = 12,
  TE_SELECT_KINDS = 14,
  TE_SELECT_KIND_BITS = TE_SELECT_KINDS,
  TE_SELECT_SOURCES,   /* how many kinds items may have */
  TE_SELECT_AS_IS = -1 /* not converted: elements of out's type, or booleans in bytes */
};

/* Stages: loops that make elements of one kind of items of another. They have the type of a kernel;
 * their data are the items and the elements. */
typedef struct {
  te_select_where_run of[TE_SELECT_SOURCES][TE_SELECT_KINDS];
} te_select_where_stages;

/* The inputs of a call that are converted on the way. */
typedef struct {
  int32_t kinds[TE_SELECT_INPUTS]; /* of their items */
  int32_t out_kind;
  int32_t flags;    /* of stages from float16 */
  const char* bits; /* where the bits of cond begin; its address and strides count bits */
} te_select_where_sources;

/* Bytes of an item; of bits 1, as its addresses count bits. */
static inline int32_t te_select_item_of_kind(int32_t kind) {
  static const int8_t bytes[TE_SELECT_SOURCES] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 8, 16, 1};
  return bytes[kind];
}

/* The kind of a type of numbers, by the letter that NumPy has for it and its bytes; else
 * TE_SELECT_AS_IS. */
static inline int32_t te_select_kind_by(char letter, int64_t bytes) {
  static const char letters[] = "biiiiuuuufffcc";
  for (int32_t kind = 0; kind < TE_SELECT_KINDS; ++kind) {
    if (letters[kind] == letter && te_select_item_of_kind(kind) == bytes) return kind;
  }
  return TE_SELECT_AS_IS;
}

/* Bytes of an element of an operand that is not converted. */
static inline int64_t te_select_item(int operand, int32_t width) {
  return operand == TE_SELECT_COND ? 1 : width;
}

/* A place of the table: for a kernel, or NULL. Another thread may be putting one there. */
static inline te_select_where_run te_select_kernel_at(const te_select_where_run* place) {
  return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}
static inline void te_select_put_kernel(te_select_where_run* place, te_select_where_run kernel) {
  __atomic_store_n(place, kernel, __ATOMIC_RELEASE);
}

/* What is decided about a call. */
typedef struct {
  int32_t kernel; /* the result of the call, as where_call.h has it */
  int32_t threads, past_cache, by_tiles;
  int32_t block;   /* elements that are converted at a time; 0 if nothing is */
  int32_t by_team; /* whether the threads are those of the program's OpenMP team */
} te_select_where_plan;

/* A step of a chain. `moving` is the number of its kernel of runs. A side that does not move is one
 * element; cond moves. */
typedef struct {
  char* data[TE_SELECT_INPUTS];
  int32_t moving;
} te_select_where_step;

/* Selects one after the other into the same out, whose memory is contiguous, as are all operands. Else
 * of each step but the first is out; no other operand overlaps it. */
typedef struct {
  int64_t elements;
  int32_t width, count; /* bytes of an element; steps */
  const te_select_where_step* steps;
  char* out;
} te_select_where_chain;

/* What a library of the family offers. */
typedef struct te_select_where_library {
  int64_t version;
  /* Makes a call; or only decides about it, if `plan` is not NULL. */
  int32_t (*call)(const te_select_where_call* call, te_select_where_plan* plan);
  /* Makes a chain. */
  int32_t (*chain)(const te_select_where_chain* chain);
  /* Why calls are refused, a text that is never freed; NULL if they are not refused. */
  const char* (*refusal)(void);
  /* Gives `call` the kernels of another library, too. */
  void (*add)(const struct te_select_where_library* other);
  const te_select_where_kernels* kernels; /* of this library only */
  /* As `call`, with inputs that are converted; and the stages of this library only. */
  int32_t (*staged)(const te_select_where_call* call, const te_select_where_sources* sources,
                    te_select_where_plan* plan);
  const te_select_where_stages* stages;
} te_select_where_library;

/* The most bytes of an operand, or along an axis: products with strides stay an int64. */
static const int64_t TE_SELECT_REACH = INT64_C(1) << 56;

/* The axes of an operand as its caller has them; all are 0 for a single value. */
typedef struct {
  int32_t ndim;
  const int64_t *shape, *strides; /* strides are bytes; it is compact if they are NULL */
} te_select_view;

/* Sets the shape of out to what the inputs broadcast to, and the strides of these. `width` of the call
 * is set before. Returns the number of elements; -1 if the inputs do not broadcast, or to more than
 * 64 axes or 2^63 - 1 elements. */
int64_t te_select_join(te_select_where_call* call, const te_select_view inputs[TE_SELECT_INPUTS]);

/* Sets the strides of out, of which there must be some, if it has the shape that the inputs broadcast
 * to; else returns 0. */
int te_select_join_out(te_select_where_call* call, const te_select_view* out);

/* Whether out may overlap an input or itself; the result must then be written elsewhere first. It
 * is no overlap if then or else is out itself: the same address and strides, and items of the same
 * size. `sources` is NULL if nothing is converted. */
int te_select_where_overlaps(const te_select_where_call* call,
                             const te_select_where_sources* sources);

/* Whether a call that a stranger filled in makes sense: no operand lacks memory or is larger than any
 * memory, and out overlaps nothing. */
int te_select_where_is_sound(const te_select_where_call* call);
