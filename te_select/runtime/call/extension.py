"""The extension, which calls kernels by NumPy's C API, and how much memory it keeps for results."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401 - where the extension imports it, Ctrl-C is lost

from te_select.errors import suppress, warn

# The most memory that is kept, in MiB; 0 keeps none.
VARIABLE = "TE_SELECT_KEEP_MEMORY"
_MIB = 1 << 20
_MOST = 400 * _MIB
_OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")  # 2: the system counts what is not used, too

try:
    extension: Any = importlib.import_module("te_select.runtime.call._extension")
except ModuleNotFoundError:
    raise ImportError(
        f"{Path(__file__).parents[2]} are sources of te_select, in which nothing is built for "
        f"Python {sys.version_info[0]}.{sys.version_info[1]}: start Python in another folder, or "
        "run pip install -e . in this one"
    ) from None
"""The module in C."""
# Makes an array of a shape and a type; memory that was kept is taken for a large one.
empty: Any = extension.empty


def most_kept() -> int:
    """The most bytes that are kept for large results.

    Warns
    -----
    RuntimeWarning
        If ``TE_SELECT_KEEP_MEMORY`` is not a whole number of MiB.
    """
    said = os.environ.get(VARIABLE, "")
    if said.isdecimal():
        return min(int(said) * _MIB, 1 << 60)
    if said:
        warn(f"{VARIABLE} is {said!r}; expected a whole number of MiB, 0 for none")
    with suppress(OSError):
        return 0 if _OVERCOMMIT.read_bytes().strip() == b"2" else _MOST
    return _MOST


# As NumPy has it: "NUMPY_MADVISE_HUGEPAGE" of its global configuration options.
extension.keep_memory(most_kept(), os.environ.get("NUMPY_MADVISE_HUGEPAGE", "1") != "0")
