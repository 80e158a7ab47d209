/* Memory of large results, which is kept for the next ones when an array dies.
 *
 * The system gives new pages full of zeros; that takes three quarters of the time of a large result.
 * NumPy is told of this memory by a handler (NEP 49), which is in effect while an array is made, and
 * which the array remembers. A thread gives back what nobody has taken for a round.
 *
 * The pages of what is kept are the system's if any control group, or the machine, is short of
 * memory: it takes them before it ends a process. MADV_FREE takes 0.05 ms for 100 MB of huge pages,
 * and writing these takes as long as without it. Address space is not taken, so nothing is
 * kept if that is limited. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "extension.h"

enum {
  LEAST = 1 << 25,      /* bytes; the C library keeps smaller blocks itself (M_MMAP_THRESHOLD) */
  HUGE_FROM = 1 << 22,  /* bytes for which NumPy asks for huge pages */
  SPARE = 4,            /* a block may be larger than what is asked for by a fourth part */
  ROUND_NS = 500000000, /* after one to two rounds a block is given back */
  LAZILY = 8,           /* MADV_FREE, which is in headers since Linux 4.5 */
};

/* What a block holds while it is kept. */
typedef struct block {
  struct block* older;
  size_t bytes;
  int rounds;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block* newest;
static int sweeps;
static size_t all_bytes, limit;
static int asks_for_huge_pages;

/* ---- blocks; the lock is held ------------------------------------------------------------------- */

/* Takes out the blocks that have seen so many rounds, and the oldest ones until no more than so many
 * bytes are kept. */
static block* take_out(int rounds, size_t bytes) {
  block** at = &newest;
  for (; *at && (*at)->rounds < rounds && (*at)->bytes <= bytes; at = &(*at)->older) {
    bytes -= (*at)->bytes;
  }
  block* taken = *at;
  for (const block* each = taken; each; each = each->older) all_bytes -= each->bytes;
  *at = NULL;
  return taken;
}

/* ---- giving back; the lock is not held ---------------------------------------------------------- */

static void give_back(block* taken) {
  while (taken) {
    block* next = taken->older;
    free(taken);
    taken = next;
  }
}

static void give_all_back(void) {
  pthread_mutex_lock(&lock);
  block* all = take_out(0, 0);
  pthread_mutex_unlock(&lock);
  give_back(all);
}

/* Runs while something is kept. */
static void* sweep(void* Py_UNUSED(unused)) {
  const struct timespec round = {.tv_nsec = ROUND_NS};
  for (int goes_on = 1; goes_on;) {
    nanosleep(&round, NULL);
    pthread_mutex_lock(&lock);
    block* old = take_out(1, SIZE_MAX);
    for (block* each = newest; each; each = each->older) ++each->rounds;
    goes_on = sweeps = newest != NULL;
    pthread_mutex_unlock(&lock);
    give_back(old);
  }
  return NULL;
}

/* Starts the thread that gives memory back; 0 if there is none. */
static int start_sweeping(void) {
  if (sweeps) return 1;
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  sweeps = !pthread_create(&thread, NULL, sweep, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (sweeps) pthread_detach(thread);
  return sweeps;
}

/* ---- forks -------------------------------------------------------------------------------------- */

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_in_parent(void) { pthread_mutex_unlock(&lock); }

/* The child has no thread that sweeps. What it would keep, its parent may write, page by page. */
static void after_in_child(void) {
  sweeps = 0;
  block* all = take_out(0, 0);
  pthread_mutex_unlock(&lock);
  give_back(all);
}

/* ---- the handler -------------------------------------------------------------------------------- */

static void* take_kept(size_t size) {
  pthread_mutex_lock(&lock);
  block** at = &newest; /* it may still be in the caches */
  while (*at && ((*at)->bytes < size || (*at)->bytes - size > size / SPARE)) at = &(*at)->older;
  block* found = *at;
  if (found) {
    *at = found->older;
    all_bytes -= found->bytes;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

/* Gives advice on the whole pages of a block but its head; -1 if the system does not take it. */
static int advise(void* address, size_t size, int advice) {
  size_t page = (size_t)getpagesize();
  size_t begin = (uintptr_t)address + sizeof(block);
  begin += (page - begin % page) % page;
  return madvise((void*)begin, ((uintptr_t)address + size - begin) / page * page, advice);
}

static void* new_block(size_t size) {
  void* address = malloc(size);
  int asks = __atomic_load_n(&asks_for_huge_pages, __ATOMIC_RELAXED);
  if (address && asks && size >= HUGE_FROM) advise(address, size, MADV_HUGEPAGE);
  return address;
}

static void* allocate(void* Py_UNUSED(context), size_t size) {
  void* address = size < LEAST ? NULL : take_kept(size);
  return address ? address : new_block(size);
}

static void* allocate_zeros(void* Py_UNUSED(context), size_t number, size_t size) {
  return calloc(number, size);
}

static void* change_size(void* Py_UNUSED(context), void* address, size_t size) {
  return realloc(address, size);
}

/* Whether the process may run out of addresses while the system has memory. */
static int is_address_space_limited(void) {
  struct rlimit all, data;
  return getrlimit(RLIMIT_AS, &all) || getrlimit(RLIMIT_DATA, &data) ||
         all.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY;
}

static void release(void* Py_UNUSED(context), void* address, size_t Py_UNUSED(size)) {
  size_t bytes = malloc_usable_size(address);
  block *given = address, *others = NULL;
  int may_stay = bytes >= LEAST && bytes <= __atomic_load_n(&limit, __ATOMIC_RELAXED) &&
                 !is_address_space_limited() && !advise(address, bytes, LAZILY);
  pthread_mutex_lock(&lock);
  if (may_stay && bytes <= limit && start_sweeping()) {
    others = take_out(INT_MAX, limit - bytes);
    *given = (block){.older = newest, .bytes = bytes};
    newest = given;
    all_bytes += bytes;
    given = NULL;
  }
  pthread_mutex_unlock(&lock);
  free(given);
  give_back(others);
}

static PyDataMem_Handler handler = {
    "te_select", 1, {NULL, allocate, allocate_zeros, change_size, release}};

/* ---- arrays ------------------------------------------------------------------------------------- */

static PyObject* handler_capsule;

static int is_large(const PyArray_Descr* type, int ndim, const npy_intp* shape) {
  npy_intp bytes = PyDataType_ELSIZE(type);
  for (int axis = 0; axis < ndim; ++axis) {
    if (__builtin_mul_overflow(bytes, shape[axis], &bytes)) return 0;
  }
  return bytes >= LEAST && (size_t)bytes <= __atomic_load_n(&limit, __ATOMIC_RELAXED);
}

PyArrayObject* te_select_new_array(PyArray_Descr* type, int ndim, const npy_intp* shape,
                                   const npy_intp* strides) {
  PyObject* users = NULL;
  if (handler_capsule && is_large(type, ndim, shape)) {
    users = PyDataMem_SetHandler(handler_capsule);
    if (users && users != PyDataMem_DefaultHandler) {
      Py_XDECREF(PyDataMem_SetHandler(users));
      Py_CLEAR(users);
    }
    if (PyErr_Occurred()) {
      Py_DECREF(type);
      return NULL;
    }
  }
  Py_INCREF(type); /* for a second try */
  PyObject* made = PyArray_NewFromDescr(&PyArray_Type, type, ndim, (npy_intp*)shape,
                                        (npy_intp*)strides, NULL, 0, NULL);
  if (made || !PyErr_ExceptionMatches(PyExc_MemoryError)) {
    Py_DECREF(type);
  } else {
    PyErr_Clear();
    give_all_back();
    made = PyArray_NewFromDescr(&PyArray_Type, type, ndim, (npy_intp*)shape, (npy_intp*)strides,
                                NULL, 0, NULL);
  }
  if (users) {
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    Py_XDECREF(PyDataMem_SetHandler(users));
    Py_DECREF(users);
    PyErr_Restore(kind, value, traceback);
  }
  return (PyArrayObject*)made;
}

PyObject* te_select_keep_memory(PyObject* Py_UNUSED(module), PyObject* args) {
  Py_ssize_t most;
  int huge;
  if (!PyArg_ParseTuple(args, "np", &most, &huge)) return NULL;
  if (most < 0) return PyErr_Format(PyExc_OverflowError, "expected the most bytes, 0 or more");
  if (!handler_capsule) {
    handler_capsule = PyCapsule_New(&handler, "mem_handler", NULL);
    if (!handler_capsule) return NULL;
    pthread_atfork(before_fork, after_in_parent, after_in_child);
  }
  pthread_mutex_lock(&lock);
  __atomic_store_n(&limit, (size_t)most, __ATOMIC_RELAXED);
  __atomic_store_n(&asks_for_huge_pages, huge, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&lock);
  give_all_back();
  Py_RETURN_NONE;
}

PyObject* te_select_bytes_kept(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(unused)) {
  pthread_mutex_lock(&lock);
  size_t found = all_bytes;
  pthread_mutex_unlock(&lock);
  return PyLong_FromSize_t(found);
}

PyObject* te_select_empty(PyObject* Py_UNUSED(module), PyObject* const* args, Py_ssize_t number) {
  if (number != 2 || !PyTuple_CheckExact(args[0]) || !PyArray_DescrCheck(args[1])) {
    return PyErr_Format(PyExc_TypeError, "expected a shape, a tuple, and a type");
  }
  PyArray_Dims shape = {NULL, 0};
  if (!PyArray_IntpConverter(args[0], &shape)) return NULL;
  PyArray_Descr* type = (PyArray_Descr*)Py_NewRef(args[1]);
  PyArrayObject* made = te_select_new_array(type, shape.len, shape.ptr, NULL);
  PyDimMem_FREE(shape.ptr);
  return (PyObject*)made;
}
