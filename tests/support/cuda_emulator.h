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
  uint64_t loaded, streamed;           // bytes
  std::vector<unsigned char> written;  // how often, by byte
};

static std::vector<Range> ranges;
static std::string error;
static int (*known)(uint64_t at, uint64_t size);  // whether memory is the device's

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
T load(const T* at, bool streamed = false) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(at);
  if (Range* range = check(address, sizeof(T), false)) {
    range->loaded += sizeof(T);
    if (streamed) range->streamed += sizeof(T);
  }
  return known && !known(address, sizeof(T)) ? T{} : *at;  // else what others keep there
}

template <class T>
void store(T* at, T value, bool streamed = false) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(at);
  if (Range* range = check(address, sizeof(T), true)) {
    if (streamed) range->streamed += sizeof(T);
    for (size_t i = 0; i < sizeof(T); ++i) {
      if (range->written[address - range->begin + i]++) {
        throw std::runtime_error("byte " + std::to_string(address - range->begin + i) +
                                 " of out is stored twice");
      }
    }
  }
  if (!known || known(address, sizeof(T))) *at = value;
}

template <class... A, size_t... I>
void call(void (*kernel)(A...), void** params, std::index_sequence<I...>) {
  kernel(*static_cast<A*>(params[I])...);
}

// Returns CUDA_ERROR_MISALIGNED_ADDRESS for whatever went wrong, or 0.
template <class... A>
int launch(void (*kernel)(A...), int64_t blocks, int threads, void** params) {
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
    return 716;
  }
  return 0;
}

}  // namespace emulator

template <class T>
T __ldcs(const T* at) {
  return emulator::load(at, true);
}

template <class T>
void __stcs(T* at, T value) {
  emulator::store(at, value, true);
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
      {begin, begin + bytes, writable != 0, 0, 0, std::vector<unsigned char>(bytes)});
}

// Memory that is not known is that of others: it is neither read nor written, and that is no error.
extern "C" void te_select_emulator_ask(int (*known)(uint64_t at, uint64_t size)) {
  emulator::known = known;
}

extern "C" int64_t te_select_emulator_loaded(int range) { return emulator::ranges[range].loaded; }

extern "C" int64_t te_select_emulator_streamed(int range) {
  return emulator::ranges[range].streamed;
}

extern "C" void te_select_emulator_reset() {
  emulator::ranges.clear();
  emulator::error.clear();
}

extern "C" const char* te_select_emulator_error() { return emulator::error.c_str(); }
