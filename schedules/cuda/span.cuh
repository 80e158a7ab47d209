// Span kernels for CUDA: they take the place of a schedule's annotated leaf.
//
// The loops of a Select are one flat run of elements, cut into tiles of THREADS x VECTORS vectors
// of 16 bytes. A block takes a tile. Vector v of thread t is the tile's (v * THREADS + t)th, so
// every access of a warp is one contiguous piece of memory. A thread reads cond for all of its
// vectors, then the sides for all of them, then stores. So VECTORS independent loads per operand
// are in flight.
//
// How an operand moves decides how a vector of it is read:
//
//   FLAT   along every loop            one 128-bit load (cond: one load of a byte per element)
//   INNER  along the innermost, not    the same, if rows are whole vectors; else per element
//          along all
//   OUTER  not along the innermost     one element for the whole vector, if rows are whole
//                                      vectors; else per element
//   PAIR   along an innermost loop of  one vector, once per thread, if rows are whole vectors;
//          two 8-byte elements only    else per element
//   FIXED  along none                  one element, once per thread
//
// A null pointer stands for an operand of one element that is passed by value instead.
//
// A pointer is assumed to be aligned to its element, and to no more. Vectors begin where `out` is
// aligned to 16 bytes. The first block handles the elements before the first vector and after the
// last one, less than two vectors. Whether the operands are aligned there too is one decision for
// the whole grid. If one is not, its elements are loaded singly. out is still stored by vectors.
//
// A kernel is described by a class K, which span.py writes:
//
//   WIDTH, THREADS, VECTORS   bytes per element, threads per block, vectors per thread
//   STREAM                    whether FLAT operands and out are marked as used once
//   SKIP                      whether a vector of a side that cond does not select is left unread;
//                             if the other side is out itself, nothing is read or written
//   STRIDED                   whether a block may have more than one tile
//   NAMED                     whether an extent is known only at run time
//   WHOLE_ROWS, BROKEN_ROWS   whether rows can be whole vectors, and whether they can be other rows
//   moves(operand), total(), inner(), Position

namespace te_select {

enum Moves { FLAT, INNER, OUTER, PAIR, FIXED };
enum Operand { COND, THEN, ELSE };

// An operand: its address, its one element if it has no address, and what a thread reads once.
struct Source {
  const void* base;
  u64 low, high;
  Vector fixed;
};

struct Operands {
  const void* base[3];
  void* out;
  te_select_scalars scalars;

  // Read before any branch. If members were read inside the branches, the compiler would merge them
  // to one read at a computed address, which keeps the whole struct in local memory.
  template <Operand OPERAND>
  __device__ __forceinline__ Source source() const {
    if constexpr (OPERAND == COND) return {base[COND], scalars.cond[0], 0, {}};
    if constexpr (OPERAND == THEN) return {base[THEN], scalars.then[0], scalars.then[1], {}};
    return {base[ELSE], scalars.else_[0], scalars.else_[1], {}};
  }
};

// Element `index` of an operand, kept in the caches.
template <class K, Operand OPERAND, class T>
__device__ __forceinline__ T element(const Source& source, u64 index) {
  if constexpr (K::moves(OPERAND) == FIXED || K::moves(OPERAND) == PAIR) {
    if (source.base == nullptr) return static_cast<T>(index != 0 ? +source.high : +source.low);
  }
  return load<false, T>(source.base, index);
}

// One way through a kernel. ROWS: every vector lies within one row, and INNER operands are aligned.
// FLATS: FLAT operands are aligned.
template <class K, class Index, bool ROWS, bool FLATS>
struct Way {
  static constexpr int LANES = VECTOR_BYTES / K::WIDTH;
  static constexpr bool ONE_SIDED =  // cond is one value for a vector
      K::moves(COND) == FIXED || (ROWS && K::moves(COND) == OUTER);
  using Element = typename Unsigned<K::WIDTH>::type;
  using Position = typename K::template Position<Index>;

  __device__ static constexpr bool by_vector(Operand operand) {
    const Moves moves = K::moves(operand);
    return (FLATS && moves == FLAT) || (ROWS && moves == INNER);
  }
  __device__ static constexpr bool streamed(Operand operand) {
    return K::STREAM && K::moves(operand) == FLAT;
  }

  __device__ __forceinline__ static bool truth(const Source& cond, u64 index) {
    return element<K, COND, u8>(cond, index) != 0;
  }

  // An operand, with the part of it that is the same for all vectors.
  template <Operand OPERAND>
  __device__ __forceinline__ static Source prepared(const Operands& operands) {
    Source source = operands.template source<OPERAND>();
    if constexpr (OPERAND == COND) {
      if constexpr (K::moves(COND) == FIXED) source.fixed.word[0] = truth(source, 0);
    } else if constexpr (K::moves(OPERAND) == FIXED) {
      source.fixed = splat<K::WIDTH>(element<K, OPERAND, Element>(source, 0));
    } else if constexpr (ROWS && K::moves(OPERAND) == PAIR) {
      put<K::WIDTH>(source.fixed, 0, element<K, OPERAND, Element>(source, 0));
      put<K::WIDTH>(source.fixed, 1, element<K, OPERAND, Element>(source, 1));
    }
    return source;
  }

  __device__ __forceinline__ static Mask<LANES> mask(const Source& cond, Position at) {
    Mask<LANES> mask = Mask<LANES>::of(false);
    if constexpr (K::moves(COND) == FIXED) {
      mask = Mask<LANES>::of(cond.fixed.word[0] != 0);
    } else if constexpr (ONE_SIDED) {
      mask = Mask<LANES>::of(truth(cond, at.template offset<COND>()));
    } else if constexpr (by_vector(COND)) {
      const u8* first = static_cast<const u8*>(cond.base) + at.template offset<COND>();
      if constexpr (LANES == 16) {
        const uint4 bytes = load<streamed(COND), uint4>(first, 0);
        mask.set(0, bytes.x), mask.set(1, bytes.y), mask.set(2, bytes.z), mask.set(3, bytes.w);
      } else if constexpr (LANES == 8) {
        const uint2 bytes = load<streamed(COND), uint2>(first, 0);
        mask.set(0, bytes.x), mask.set(1, bytes.y);
      } else {
        mask.set(0, load<streamed(COND), typename Unsigned<LANES>::type>(first, 0));
      }
    } else {
#pragma unroll
      for (int lane = 0; lane < LANES; ++lane, at.step()) {
        const u32 high = truth(cond, at.template offset<COND>()) ? 0x80 : 0;
        mask.word[lane / 4] |= high << (8 * (lane % 4));
      }
    }
    return mask;
  }

  template <bool STREAM>
  __device__ __forceinline__ static Vector vector(const void* base, Index index) {
    const uint4 words = load<STREAM, uint4>(static_cast<const Element*>(base) + index, 0);
    return {{words.x, words.y, words.z, words.w}};
  }

  template <Operand SIDE>
  __device__ __forceinline__ static Vector side(const Source& source, Position at) {
    if constexpr (K::moves(SIDE) == FIXED || (ROWS && K::moves(SIDE) == PAIR)) {
      return source.fixed;
    } else if constexpr (by_vector(SIDE)) {
      return vector<streamed(SIDE)>(source.base, at.template offset<SIDE>());
    } else if constexpr (ROWS && K::moves(SIDE) == OUTER) {
      return splat<K::WIDTH>(element<K, SIDE, Element>(source, at.template offset<SIDE>()));
    } else {
      Vector vector = {};
#pragma unroll
      for (int lane = 0; lane < LANES; ++lane, at.step()) {
        const Index index = at.template offset<SIDE>();
        put<K::WIDTH>(vector, lane, element<K, SIDE, Element>(source, index));
      }
      return vector;
    }
  }

  // The side that cond selects for the whole vector. If possible, it is one load from a chosen
  // address, because two loads into one register would wait for each other.
  __device__ __forceinline__ static Vector chosen(const Source& then, const Source& else_,
                                                  Position at, bool truth) {
    if constexpr (by_vector(THEN) && by_vector(ELSE)) {
      constexpr bool BOTH = streamed(THEN) && streamed(ELSE);
      const Index index = truth ? at.template offset<THEN>() : at.template offset<ELSE>();
      const void* base = truth ? +then.base : +else_.base;
      return vector<BOTH>(base, index);
    } else {
      return truth ? side<THEN>(then, at) : side<ELSE>(else_, at);
    }
  }

  // Whether a side is out itself, element by element.
  template <Operand SIDE>
  __device__ __forceinline__ static bool is_out(const Source& source, const void* out) {
    return K::moves(SIDE) == FLAT && (K::SKIP || ONE_SIDED) && source.base == out;
  }

  // COUNT vectors: first, first + THREADS, ... Numbers past the last vector read the last one again,
  // so that no load waits for a branch, and store nothing.
  template <int COUNT>
  __device__ __forceinline__ static void run(const K& loops, const Operands& operands, Index first,
                                             Index vectors, Index head) {
    const Source cond = prepared<COND>(operands);
    const Source then = prepared<THEN>(operands);
    const Source else_ = prepared<ELSE>(operands);
    const bool then_is_out = is_out<THEN>(then, operands.out);
    const bool else_is_out = is_out<ELSE>(else_, operands.out);
    Mask<LANES> masks[COUNT];
    Vector picked[COUNT], other[COUNT];
    Index number[COUNT];
    bool stays[COUNT];  // what it holds is what cond selects
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const Index index = first + i * K::THREADS;
      number[i] = index < vectors ? index : vectors - 1;
      masks[i] = mask(cond, Position(loops, head + number[i] * LANES));
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const Position at(loops, head + number[i] * LANES);
      stays[i] = (then_is_out && masks[i].all()) || (else_is_out && !masks[i].any());
      if (stays[i]) continue;
      if constexpr (ONE_SIDED) {
        picked[i] = chosen(then, else_, at, masks[i].any());
      } else {
        picked[i] = other[i] = {};
        if (!K::SKIP || masks[i].any()) picked[i] = side<THEN>(then, at);
        if (!K::SKIP || !masks[i].all()) other[i] = side<ELSE>(else_, at);
      }
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      u32* word = picked[i].word;
      if constexpr (!ONE_SIDED) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          word[k] = blend<K::WIDTH, LANES>(masks[i], k, word[k], other[i].word[k]);
        }
      }
      if (first + i * K::THREADS < vectors && !stays[i]) {
        Element* out = static_cast<Element*>(operands.out) + head + number[i] * LANES;
        store<K::STREAM>(out, 0, uint4{word[0], word[1], word[2], word[3]});
      }
    }
  }
};

// One element of out.
template <class K, class Index>
__device__ __forceinline__ void single(const K& loops, const Operands& operands, Index flat) {
  using Element = typename Unsigned<K::WIDTH>::type;
  const typename K::template Position<Index> at(loops, flat);
  const Source cond = operands.source<COND>();
  const Source then = operands.source<THEN>();
  const Source else_ = operands.source<ELSE>();
  const bool truth = element<K, COND, u8>(cond, at.template offset<COND>()) != 0;
  const Element value = truth ? element<K, THEN, Element>(then, at.template offset<THEN>())
                              : element<K, ELSE, Element>(else_, at.template offset<ELSE>());
  store<false, Element>(operands.out, flat, value);
}

// The alignment that the pointers of a call have.
struct Alignment {
  bool flats;  // FLAT operands are aligned where out is
  bool rows;   // every vector lies within a row, and INNER operands are aligned there
};

template <class K>
__device__ __forceinline__ Alignment alignment(const K& loops, const Operands& operands, u64 head) {
  constexpr int LANES = VECTOR_BYTES / K::WIDTH;
  Alignment found = {true, K::WHOLE_ROWS};
  if constexpr (K::NAMED && K::BROKEN_ROWS) found.rows = loops.inner() % LANES == 0;
#pragma unroll
  for (int i = COND; i <= ELSE; ++i) {
    const Moves moves = K::moves(static_cast<Operand>(i));
    const int width = i == COND ? 1 : K::WIDTH;
    const u64 address = reinterpret_cast<u64>(operands.base[i]) + head * width;
    const bool here = address % (width * LANES) == 0;
    if (moves == FLAT) found.flats &= here;
    if (moves == INNER) found.rows &= here;
    if (moves != FLAT && moves != FIXED) found.rows &= head == 0;
  }
  return found;
}

// A thread's vectors of one tile, COUNT at once.
template <class WAY, int COUNT, class K, class Index>
__device__ __forceinline__ void run(const K& loops, const Operands& operands, Index first,
                                    Index vectors, Index head) {
#pragma unroll 1
  for (int i = 0; i < K::VECTORS; i += COUNT) {
    WAY::template run<COUNT>(loops, operands, first + i * K::THREADS, vectors, head);
  }
}

// A thread's vectors of one tile, in the way that the pointers allow.
template <class K, class Index>
__device__ __forceinline__ void tile(const K& loops, const Operands& operands, Alignment alignment,
                                     Index first, Index vectors, Index head) {
  constexpr int MOST = sizeof(Index) == 8 ? 2 : 8;  // dividing 64-bit indices takes registers
  constexpr int AT_ONCE = K::VECTORS < MOST ? K::VECTORS : MOST;
  if constexpr (K::WHOLE_ROWS) {
    if (alignment.flats && alignment.rows) {
      return run<Way<K, Index, true, true>, AT_ONCE>(loops, operands, first, vectors, head);
    }
  }
  if constexpr (K::BROKEN_ROWS) {
    if (alignment.flats) {
      return run<Way<K, Index, false, true>, AT_ONCE>(loops, operands, first, vectors, head);
    }
  }
  run<Way<K, Index, false, false>, 1>(loops, operands, first, vectors, head);
}

// The tiles of one block.
template <class K, class Index>
__device__ __forceinline__ void span(const K& loops, const Operands& operands) {
  constexpr int LANES = VECTOR_BYTES / K::WIDTH;
  constexpr u64 TILE = static_cast<u64>(K::THREADS) * K::VECTORS;
  const Index total = static_cast<Index>(loops.total());
  const u32 behind = static_cast<u32>(reinterpret_cast<u64>(operands.out)) % VECTOR_BYTES;
  const u32 before = (VECTOR_BYTES - behind) % VECTOR_BYTES / K::WIDTH;
  const Index head = before < total ? before : total;
  const Index vectors = (total - head) / LANES;
  const Alignment found = alignment(loops, operands, head);

  for (u64 at = blockIdx.x; at * TILE < vectors; at += gridDim.x) {
    const Index first = static_cast<Index>(at * TILE) + threadIdx.x;
    tile(loops, operands, found, first, vectors, head);
    if constexpr (!K::STRIDED) break;
  }

  const u32 rest = static_cast<u32>(total - vectors * LANES);
  if (blockIdx.x == 0 && threadIdx.x < rest) {
    const Index flat = threadIdx.x < head ? threadIdx.x : vectors * LANES + threadIdx.x;
    single(loops, operands, flat);
  }
}

// Indices have 64 bits only if the run is too long for 32.
template <class K>
__device__ __forceinline__ void select(const K& loops, const Operands& operands) {
  constexpr u64 SHORT = 0x7fffffff;
  if constexpr (K::NAMED) {
    if (loops.total() <= SHORT) span<K, u32>(loops, operands);
    else span<K, u64>(loops, operands);
  } else if constexpr (K{}.total() <= SHORT) {
    span<K, u32>(loops, operands);
  } else {
    span<K, u64>(loops, operands);
  }
}

}  // namespace te_select
