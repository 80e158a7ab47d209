"""The extension, which calls kernels by NumPy's C API, and how much memory it keeps for results."""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import sys
from pathlib import Path
from typing import Any

from te_select.errors import warn

VARIABLE = "TE_SELECT_KEEP_MEMORY"
"""The most memory that is kept, in MiB; 0 keeps none."""
_MIB = 1 << 20
_MOST = 400 * _MIB
_SHARE = 16  # no more than this part of the memory that the process may have
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""What a container may have, by the two versions of Linux's control groups."""

try:
    extension: Any = importlib.import_module("te_select.runtime.call._extension")
except ModuleNotFoundError:
    raise ImportError(
        f"{Path(__file__).parents[2]} are sources of te_select, in which nothing is built for "
        f"Python {sys.version_info[0]}.{sys.version_info[1]}: start Python in another folder, or "
        "run pip install -e . in this one"
    ) from None
"""The module in C."""
empty: Any = extension.empty
"""Makes an array of a shape and a type; memory that was kept is taken for a large one."""


def most_kept() -> int:
    """The most bytes that are kept for large results.

    Warns
    -----
    RuntimeWarning
        If ``TE_SELECT_KEEP_MEMORY`` is no whole number of MiB.
    """
    said = os.environ.get(VARIABLE, "")
    if said.isdecimal():
        return min(int(said) * _MIB, 1 << 60)
    if said:
        warn(f"{VARIABLE} is {said!r}; expected a whole number of MiB, 0 for none")
    may_have = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    may_have += [most for most in resource.getrlimit(resource.RLIMIT_AS)[:1] if most > 0]
    for path in _LIMITS:
        with contextlib.suppress(OSError, ValueError):  # ValueError: it is "max"
            may_have.append(int(path.read_text(encoding="ascii")))
    return min(_MOST, *(size // _SHARE for size in may_have))


# As NumPy has it: "NUMPY_MADVISE_HUGEPAGE" of its global configuration options.
extension.keep_memory(most_kept(), os.environ.get("NUMPY_MADVISE_HUGEPAGE", "1") != "0")
