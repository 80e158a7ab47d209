/* Functions that a measuring client needs on an RPC server and TVM does not have. They let a server
 * outlive the crash or hang of a candidate and the death of its client, fill and compare memory
 * without sending it, and report the CPU's features and load. The probe is uploaded into every session. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cpu/cpu_features.h"
#include "cpu/machine.h"
#include "host.h"

enum { MOST_FILES = 1 << 16, MOST_CPUS = 1 << 16 };

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};

/* If a session ends with any other code, TVM's server ends, too. */
static void end_session(__attribute__((unused)) int signal) { _exit(0); }

static int fail(const char* message) {
  TVMFFIErrorSetRaisedFromCStr("TypeError", message);
  return -1;
}

static char* data_of(const DLTensor* tensor) { return (char*)tensor->data + tensor->byte_offset; }

static size_t bytes_of(const DLTensor* tensor) {
  size_t bytes = (size_t)(tensor->dtype.bits + 7) / 8 * tensor->dtype.lanes;
  for (int32_t i = 0; i < tensor->ndim; ++i) bytes *= (size_t)tensor->shape[i];
  return bytes;
}

/* watch(seconds): from now on a crash ends the session in good order. So does a run of more than
 * `seconds`; 0 is no limit. */
TE_SELECT_EXPORT(watch) {
  if (num_args != 1 || args[0].type_index != kTVMFFIInt) return fail("watch takes an int");
  for (size_t i = 0; i < sizeof(fatal_signals) / sizeof(fatal_signals[0]); ++i) {
    signal(fatal_signals[i], end_session);
  }
  alarm((unsigned)args[0].v_int64);
  te_select_return_int(result, 0);
  return 0;
}

static int is_connection_at(int file, uint16_t port) {
  struct sockaddr_in6 mine = {0}, peer = {0}; /* the port has the same offset as in IPv4 */
  socklen_t size = sizeof(mine), peer_size = sizeof(peer);
  return !getsockname(file, (struct sockaddr*)&mine, &size) &&
         !getpeername(file, (struct sockaddr*)&peer, &peer_size) &&
         (mine.sin6_family == AF_INET || mine.sin6_family == AF_INET6) &&
         ntohs(mine.sin6_port) == port;
}

static void keep_alive(int connection) {
  const int on = 1, idle = 20, interval = 10, count = 3; /* seconds: a minute after power is lost */
  setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(connection, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  setsockopt(connection, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  setsockopt(connection, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static void* end_with_client(void* connection) {
  struct pollfd client = {(int)(intptr_t)connection, POLLRDHUP, 0};
  while (poll(&client, 1, -1) < 0) continue;
  _exit(0);
}

/* watch_client(port): from now on the session ends at once when its client does; the port is that
 * of the server. Without this, a client that dies while a candidate runs resets the connection. That
 * ends the session with an error, and then the server. Does nothing behind a proxy. */
TE_SELECT_EXPORT(watch_client) {
  if (num_args != 1 || args[0].type_index != kTVMFFIInt) return fail("watch_client takes an int");
  te_select_return_int(result, 0);
  for (int file = 0; file < MOST_FILES; ++file) {
    if (!is_connection_at(file, (uint16_t)args[0].v_int64)) continue;
    keep_alive(file);
    pthread_t watcher;
    if (!pthread_create(&watcher, NULL, end_with_client, (void*)(intptr_t)file)) {
      pthread_detach(watcher);
    }
  }
  return 0;
}

/* fill(tensor, byte) */
TE_SELECT_EXPORT(fill) {
  const DLTensor* tensor = num_args == 2 ? te_select_tensor_of(&args[0]) : NULL;
  if (!tensor || args[1].type_index != kTVMFFIInt) return fail("fill takes a tensor and an int");
  memset(data_of(tensor), (int)args[1].v_int64, bytes_of(tensor));
  te_select_return_int(result, 0);
  return 0;
}

/* compare(a, b): the first byte that differs, or -1; both are of one size. */
TE_SELECT_EXPORT(compare) {
  const DLTensor* a = num_args == 2 ? te_select_tensor_of(&args[0]) : NULL;
  const DLTensor* b = num_args == 2 ? te_select_tensor_of(&args[1]) : NULL;
  if (!a || !b || bytes_of(a) != bytes_of(b)) return fail("compare takes two tensors of one size");
  const char *left = data_of(a), *right = data_of(b);
  int64_t at = -1;
  if (memcmp(left, right, bytes_of(a))) {
    for (at = 0; left[at] == right[at];) ++at;
  }
  te_select_return_int(result, at);
  return 0;
}

static int give_text(const char* text, size_t size, TVMFFIAny* result) {
  const TVMFFIByteArray given = {text, size};
  return TVMFFIStringFromByteArray(&given, result);
}

/* cpuinfo(): the beginning of /proc/cpuinfo, which has all of the first CPU. */
TE_SELECT_EXPORT(cpuinfo) {
  static char text[1 << 14];
  FILE* file = fopen("/proc/cpuinfo", "r");
  size_t size = file ? fread(text, 1, sizeof(text), file) : 0;
  if (file) fclose(file);
  return give_text(text, size, result);
}

/* features(): those of the CPU, in one text. */
TE_SELECT_EXPORT(features) {
  char text[TE_SELECT_CPU_FEATURES_BYTES];
  te_select_list_cpu_features(text);
  return give_text(text, strlen(text), result);
}

/* CPU seconds of all programs on the CPUs that this process may use; -1 if the system has no count. */
static double used(const cpu_set_t* mine, size_t size) {
  char line[512];
  double ticks = 0;
  int count = 0;
  unsigned long long cpu, user, nice, system, irq, softirq, steal;
  FILE* file = fopen("/proc/stat", "r");
  while (file && fgets(line, sizeof(line), file) && !strncmp(line, "cpu", 3)) {
    if (sscanf(line, "cpu%llu %llu %llu %llu %*u %*u %llu %llu %llu", &cpu, &user, &nice, &system,
               &irq, &softirq, &steal) == 7 &&
        CPU_ISSET_S(cpu, size, mine)) {
      ticks += (double)(user + nice + system + irq + softirq + steal);
      ++count;
    }
  }
  if (file) fclose(file);
  return count ? ticks / (double)sysconf(_SC_CLK_TCK) : -1;
}

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* load(): seconds of the clock; CPU seconds of all programs and of this one, on the CPUs that it may
 * use; the number of these CPUs; the most threads of a call. One a line. */
TE_SELECT_EXPORT(load) {
  static char text[1024];
  static cpu_set_t mine[MOST_CPUS / CPU_SETSIZE];
  if (sched_getaffinity(0, sizeof(mine), mine)) return fail("the server's CPUs are not known");
  const double busy = used(mine, sizeof(mine));
  if (busy < 0) return fail("the server's /proc/stat does not tell how busy its CPUs are");
  te_select_machine machine;
  snprintf(text, sizeof(text), "%.6f\n%.6f\n%.6f\n%d\n%d", seconds_of(CLOCK_MONOTONIC), busy,
           seconds_of(CLOCK_PROCESS_CPUTIME_ID), CPU_COUNT_S(sizeof(mine), mine),
           te_select_count_threads(&machine));
  return give_text(text, strlen(text), result);
}
