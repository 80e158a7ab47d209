/* The roof: a copy and a streaming select, which only move bytes.
 *
 * Written for contiguous float32 with the widest vectors of the CPU they are compiled for. `stream`
 * stores past the caches; `threads` is the number of OpenMP threads. All pointers are aligned to 64
 * bytes. Each function runs `repeats` times, so that the cost of a call hardly counts.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
enum { LANES = 16 };
typedef __m512i vector;
static inline vector load(const void* p) { return _mm512_loadu_si512(p); }
static inline void store(void* p, vector v) { _mm512_storeu_si512(p, v); }
static inline void store_past(void* p, vector v) { _mm512_stream_si512((__m512i*)p, v); }
static inline vector choose(const uint8_t* c, const float* t, const float* e) {
  const __m512i wide = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)c));
  return _mm512_mask_loadu_epi32(load(e), _mm512_test_epi32_mask(wide, wide), t);
}
static inline void fence(void) { _mm_sfence(); }
#elif defined(__AVX2__)
#include <immintrin.h>
enum { LANES = 8 };
typedef __m256i vector;
static inline vector load(const void* p) { return _mm256_loadu_si256((const __m256i*)p); }
static inline void store(void* p, vector v) { _mm256_storeu_si256((__m256i*)p, v); }
static inline void store_past(void* p, vector v) { _mm256_stream_si256((__m256i*)p, v); }
static inline vector choose(const uint8_t* c, const float* t, const float* e) {
  const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)c));
  const __m256i no = _mm256_cmpeq_epi32(wide, _mm256_setzero_si256());
  return _mm256_blendv_epi8(load(t), load(e), no);
}
static inline void fence(void) { _mm_sfence(); }
#else
enum { LANES = 4 };
typedef struct { uint32_t lane[4]; } vector;
static inline vector load(const void* p) {
  vector v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline void store(void* p, vector v) { memcpy(p, &v, sizeof v); }
static inline void store_past(void* p, vector v) { store(p, v); }
static inline vector choose(const uint8_t* c, const float* t, const float* e) {
  const vector a = load(t), b = load(e);
  vector v;
  for (int i = 0; i < LANES; ++i) v.lane[i] = c[i] ? a.lane[i] : b.lane[i];
  return v;
}
static inline void fence(void) {}
#endif

/* A copy has no cond and no `t`, and moves `e`. There are no tails: a probe moves only whole
 * vectors. */
static void move_part(const uint8_t* c, const float* t, const float* e, float* o, int64_t begin,
                      int64_t end, int stream) {
  if (c && stream) {
    for (int64_t i = begin; i < end; i += LANES) store_past(o + i, choose(c + i, t + i, e + i));
  } else if (c) {
    for (int64_t i = begin; i < end; i += LANES) store(o + i, choose(c + i, t + i, e + i));
  } else if (stream) {
    for (int64_t i = begin; i < end; i += LANES) store_past(o + i, load(e + i));
  } else {
    for (int64_t i = begin; i < end; i += LANES) store(o + i, load(e + i));
  }
  if (stream) fence();
}

static int64_t part(int64_t elements, int k, int parts) {
  return elements / LANES * k / parts * LANES;
}

int64_t roof_lanes(void) { return LANES; }

/* One thread does not enter OpenMP, because that costs more than moving 1 KB. */
void roof_move(const uint8_t* c, const float* t, const float* e, float* o, int64_t elements,
               int stream, int threads, int64_t repeats) {
  for (int64_t r = 0; r < repeats; ++r) {
    if (threads == 1) {
      move_part(c, t, e, o, 0, part(elements, 1, 1), stream);
    } else {
#pragma omp parallel for num_threads(threads) schedule(static)
      for (int k = 0; k < threads; ++k)
        move_part(c, t, e, o, part(elements, k, threads), part(elements, k + 1, threads), stream);
    }
    __asm__ volatile("" ::: "memory");
  }
}
