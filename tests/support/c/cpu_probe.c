/* A kernel that computes nothing and reports its arguments. */
#include <sched.h>
#include <stdint.h>

struct { int64_t flags, tasks, ran, fails, meet; } __tvm_ffi_seen; /* this name is exported */
int64_t __tvm_ffi_fences;

int32_t te_select_kernel_0(void* cond, void* then, void* else_, void* out, int64_t a, int64_t b,
                           int64_t flags, int64_t task, int64_t tasks) {
  if (!task) {
    __tvm_ffi_seen.flags = flags;
    __tvm_ffi_seen.tasks = tasks;
  }
  int64_t own =
      tasks > 8 ? 1 : INT64_C(1) << (8 * task); /* a byte each, as long as there are bytes */
  __atomic_add_fetch(&__tvm_ffi_seen.ran, own, __ATOMIC_SEQ_CST);
  /* Where they shall meet, a thread has one task only. */
  int64_t all = 0x0101010101010101 >> (64 - 8 * tasks);
  for (int64_t k = 0; k < 100 * 1000 * __tvm_ffi_seen.meet; ++k) {
    if (__atomic_load_n(&__tvm_ffi_seen.ran, __ATOMIC_SEQ_CST) == all) break;
    sched_yield();
  }
  return task + 1 == __tvm_ffi_seen.fails;
}
