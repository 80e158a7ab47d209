"""Targets for tests that run what they build, and marks of what some machines lack."""

import os
import resource
import time
from pathlib import Path
from platform import machine

import psutil
from pytest import mark

_X86_64 = machine() == "x86_64"
LEVEL = "x86-64-v2" if _X86_64 else machine()
"""A level that this machine runs, and most others like it."""
SEVERAL = "x86-64-v2,x86-64-v3" if _X86_64 else LEVEL
"""A library for as many levels as there are, up to two."""
FENCES = int(_X86_64)
"""How many fences order the stores of a thread past the cache; others than x86-64 need none."""
needs_fences = mark.skipif(not FENCES, reason="others have no fence")
OTHER_USER = 65534
"""The user that root becomes for tests of what others may do."""


def _limits_memory():
    """Whether the system takes a limit of memory. Under qemu-user nothing changes."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    if before[0] != resource.RLIM_INFINITY:
        return True
    resource.setrlimit(resource.RLIMIT_AS, (1 << 46, before[1]))
    after = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, before)
    return after != before


def _counts_time():
    """Whether the system tells a process how long it has run. qemu-user says 0."""
    used = time.process_time()
    return used < 0.1 or sum(psutil.Process().cpu_times()) > used / 2


def _has_users():
    """Whether root can become another user, which a user namespace need not have."""
    ranges = (
        map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines()
    )
    return any(first <= OTHER_USER < first + count for first, _, count in ranges)


_EMULATED = not _limits_memory()
needs_users = mark.skipif(
    os.geteuid() == 0 and not _has_users(), reason="this user namespace has one user"
)
needs_times = mark.skipif(not _counts_time(), reason="/proc tells no time of a process")
needs_limits = mark.skipif(_EMULATED, reason="memory cannot be limited")
# Of a C program of four threads, qemu 7.2 ended 100 of 100 forked children that started one.
needs_forks = mark.skipif(_EMULATED, reason="qemu-user ends forked children with threads")
on_x86_64 = mark.skipif(not _X86_64, reason="builds or runs code for levels of x86-64")
