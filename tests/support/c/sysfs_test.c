/* Reads the files of a test, for a process that may use some CPUs. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int64_t allowed; /* CPUs, as bits; 0 if they are not known */
int opened;      /* files, and tries */

static int look_at_process(pid_t id, size_t size, cpu_set_t* set) {
  memset(set, 0, size);
  memcpy(set, &allowed, sizeof(allowed));
  return allowed ? 0 : -1;
}
static FILE* count_and_open(const char* path, const char* mode) {
  ++opened;
  return fopen(path, mode);
}
#define sched_getaffinity look_at_process
#define fopen count_and_open
#include "sysfs.c"
