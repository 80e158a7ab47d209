// One select, cut into tasks of 128 KB moved, by four ways to run tasks: this thread alone, the pool
// of te-select, OpenMP's static loop and oneTBB.
#include <cstdint>

extern "C" {
#include "pool.h"
}

#ifdef WITH_TBB
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#endif

namespace {

constexpr int64_t kElements = 10080;  // of a task; 13 bytes each

struct Work {
  const uint8_t* cond;
  const float* then;
  const float* other;
  float* out;
  int64_t elements;
};

void Select(const Work& w, int64_t begin, int64_t end) {
  const uint8_t* cond = w.cond;
  float* __restrict out = w.out;
  for (int64_t i = begin; i < end; ++i) {
    float then = w.then[i], other = w.other[i];  // both are read, so that vectors can be
    out[i] = cond[i] ? then : other;
  }
}

int Task(int32_t task, int32_t, void* data) {
  const Work& w = *static_cast<Work*>(data);
  int64_t end = (task + 1) * kElements;
  Select(w, task * kElements, end < w.elements ? end : w.elements);
  return 0;
}

}  // namespace

extern "C" {

void run_alone(Work* w, int) { Select(*w, 0, w->elements); }

void run_pool(Work* w, int threads) {
  int32_t tasks = static_cast<int32_t>((w->elements + kElements - 1) / kElements);
  te_select_crew crew = te_select_crew_at_hand(threads, threads);
  if (crew.threads == 1) return run_alone(w, 1);
  te_select_parallel(Task, w, tasks, crew);
}

void run_openmp(Work* w, int threads) {
  int64_t tasks = (w->elements + kElements - 1) / kElements;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) Task(static_cast<int32_t>(task), 0, w);
}

#ifdef WITH_TBB
void run_tbb(Work* w, int threads) {
  static tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  static tbb::affinity_partitioner partitioner;  // which keeps tasks where their data is
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, w->elements, kElements),
      [w](const tbb::blocked_range<int64_t>& r) { Select(*w, r.begin(), r.end()); }, partitioner);
}
#endif
}
