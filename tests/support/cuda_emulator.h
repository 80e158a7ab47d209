// Stands in for CUDA, so that a kernel of te_select runs on the CPU: blocks and threads are loops,
// and every access is checked to be aligned, and inside what was allowed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define TE_SELECT_LOAD(at) emulator::load(at)
#define TE_SELECT_STORE(at, value) emulator::store(at, value)

struct alignas(8) uint2 { unsigned int x, y; };
struct alignas(16) uint4 { unsigned int x, y, z, w; };
struct dim3 { unsigned int x; };

namespace {
dim3 blockIdx, threadIdx, gridDim;
}

namespace emulator {

struct Range {
  uintptr_t begin, end;
  bool writable;
  uint64_t loaded;                     // bytes
  std::vector<unsigned char> written;  // how often, by byte
};

inline std::vector<Range> ranges;
inline std::string error;

inline Range* check(uintptr_t at, size_t size, bool write) {
  const std::string what = std::string(write ? "store" : "load") + " of " + std::to_string(size) +
                           " bytes by block " + std::to_string(blockIdx.x) + ", thread " +
                           std::to_string(threadIdx.x);
  if (at % size != 0) throw std::runtime_error(what + " is not aligned");
  for (Range& range : ranges) {
    const bool inside = range.begin <= at && at + size <= range.end;
    if (inside && (range.writable || !write)) return &range;
  }
  if (!ranges.empty()) throw std::runtime_error(what + " is out of bounds");
  return nullptr;
}

template <class T>
T load(const T* at) {
  if (Range* range = check(reinterpret_cast<uintptr_t>(at), sizeof(T), false)) {
    range->loaded += sizeof(T);
  }
  return *at;
}

template <class T>
void store(T* at, T value) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(at);
  if (Range* range = check(address, sizeof(T), true)) {
    for (size_t i = 0; i < sizeof(T); ++i) {
      if (range->written[address - range->begin + i]++) {
        throw std::runtime_error("byte " + std::to_string(address - range->begin + i) +
                                 " of out is stored twice");
      }
    }
  }
  *at = value;
}

template <class... A, size_t... I>
void call(void (*kernel)(A...), void** params, std::index_sequence<I...>) {
  kernel(*static_cast<A*>(params[I])...);
}

template <class... A>
void launch(void (*kernel)(A...), int64_t blocks, int threads, void** params) {
  gridDim.x = static_cast<unsigned int>(blocks);
  try {
    for (int64_t block = 0; block < blocks; ++block) {
      for (int thread = 0; thread < threads; ++thread) {
        blockIdx.x = static_cast<unsigned int>(block);
        threadIdx.x = static_cast<unsigned int>(thread);
        call(kernel, params, std::index_sequence_for<A...>{});
      }
    }
  } catch (const std::exception& found) {
    error = found.what();
  }
}

}  // namespace emulator

template <class T>
T __ldcs(const T* at) {
  return emulator::load(at);
}

template <class T>
void __stcs(T* at, T value) {
  emulator::store(at, value);
}

inline unsigned int __byte_perm(unsigned int a, unsigned int b, unsigned int selector) {
  const uint64_t bytes = (static_cast<uint64_t>(b) << 32) | a;
  unsigned int picked = 0;
  for (int i = 0; i < 4; ++i) {
    picked |= static_cast<unsigned int>(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  }
  return picked;
}

// Once a range is allowed, any access outside all ranges is an error.
extern "C" void te_select_emulator_allow(void* base, int64_t bytes, int writable) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(base);
  emulator::ranges.push_back(
      {begin, begin + bytes, writable != 0, 0, std::vector<unsigned char>(bytes)});
}

extern "C" int64_t te_select_emulator_loaded(int range) { return emulator::ranges[range].loaded; }

extern "C" void te_select_emulator_reset() {
  emulator::ranges.clear();
  emulator::error.clear();
}

extern "C" const char* te_select_emulator_error() { return emulator::error.c_str(); }
