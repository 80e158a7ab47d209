// Vectors of 16 bytes: loads, stores, and masks of their lanes. This is the first part of every
// translation unit; span.cuh is the second.

// Plain accesses; a test harness may replace them by checked ones.
#ifndef TE_SELECT_LOAD
#define TE_SELECT_LOAD(at) (*(at))
#define TE_SELECT_STORE(at, value) (*(at) = (value))
#endif

// Operands passed by value: each holds an element in its first bytes.
struct alignas(16) te_select_scalars { unsigned long long cond[2], then[2], else_[2]; };

namespace te_select {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr int VECTOR_BYTES = 16;

template <int WIDTH> struct Unsigned;
template <> struct Unsigned<1> { using type = u8; };
template <> struct Unsigned<2> { using type = u16; };
template <> struct Unsigned<4> { using type = u32; };
template <> struct Unsigned<8> { using type = u64; };

// STREAM: the memory is not read again, and is the first to leave the caches.
template <bool STREAM, class T>
__device__ __forceinline__ T load(const void* base, u64 index) {
  const T* at = static_cast<const T*>(base) + index;
  if constexpr (STREAM) return __ldcs(at);
  else return TE_SELECT_LOAD(at);
}

template <bool STREAM, class T>
__device__ __forceinline__ void store(void* base, u64 index, T value) {
  T* at = static_cast<T*>(base) + index;
  if constexpr (STREAM) __stcs(at, value);
  else TE_SELECT_STORE(at, value);
}

// A vector of elements.
struct Vector { u32 word[4]; };

template <int WIDTH>
__device__ __forceinline__ void put(Vector& vector, int lane, u64 element) {
  if constexpr (WIDTH == 8) {
    vector.word[2 * lane] = static_cast<u32>(element);
    vector.word[2 * lane + 1] = static_cast<u32>(element >> 32);
  } else {
    constexpr int PER_WORD = 4 / WIDTH;
    const int shift = 8 * WIDTH * (lane % PER_WORD);
    vector.word[lane / PER_WORD] |= static_cast<u32>(element) << shift;
  }
}

template <int WIDTH>
__device__ __forceinline__ Vector splat(u64 element) {
  Vector vector = {};
#pragma unroll
  for (int lane = 0; lane < VECTOR_BYTES / WIDTH; ++lane) put<WIDTH>(vector, lane, element);
  return vector;
}

// The truth of a vector's lanes: a byte each, 0x80 or 0.
template <int LANES>
struct Mask {
  static constexpr int WORDS = LANES > 4 ? LANES / 4 : 1;
  static constexpr u32 TRUE = LANES < 4 ? 0x8080u : 0x80808080u;
  u32 word[WORDS];

  __device__ __forceinline__ static Mask of(bool truth) {
    Mask mask;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) mask.word[i] = truth ? TRUE : 0;
    return mask;
  }

  // From bytes of cond, any of which is true unless it is 0.
  __device__ __forceinline__ void set(int i, u32 bytes) {
    word[i] = (((bytes & 0x7f7f7f7fu) + 0x7f7f7f7fu) | bytes) & 0x80808080u;
  }

  __device__ __forceinline__ bool any() const {
    u32 bits = 0;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) bits |= word[i];
    return bits != 0;
  }

  __device__ __forceinline__ bool all() const {
    u32 bits = TRUE;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) bits &= word[i];
    return bits == TRUE;
  }
};

// Word i of a vector: from `then` where the mask is true, from `else_` elsewhere.
template <int WIDTH, int LANES>
__device__ __forceinline__ u32 blend(const Mask<LANES>& mask, int i, u32 then, u32 else_) {
  if constexpr (WIDTH >= 4) {
    const int lane = 4 * i / WIDTH;
    return mask.word[0] & (0x80u << (8 * lane)) ? then : else_;
  } else {
    const u32 high = mask.word[i / WIDTH];
    u32 bits = (high << 1) - (high >> 7);  // 0xff for 0x80
    if constexpr (WIDTH == 2) bits = __byte_perm(bits, 0, i % 2 ? 0x3322 : 0x1100);
    return (then & bits) | (else_ & ~bits);
  }
}

}  // namespace te_select
