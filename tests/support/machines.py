"""Targets for tests that run what they build, and the mark of those that need x86-64."""

from __future__ import annotations

import platform

import pytest

from te_select.backends.targets import resolve

_X86_64 = platform.machine() == "x86_64"
LEVEL = "x86-64-v2" if _X86_64 else platform.machine()
"""A level that this machine runs, and most others like it."""
SEVERAL = "x86-64-v2,x86-64-v3" if _X86_64 else LEVEL
"""A library for as many levels as there are, up to two."""
TVM_TARGET = resolve(LEVEL).tvm
on_x86_64 = pytest.mark.skipif(not _X86_64, reason="builds or runs code for levels of x86-64")
