"""NumPy, with te_select's where, select, copyto, putmask and ma: ``import te_select.numpy as np``.

NumPy itself stays as it is. So tables that a library keys by NumPy's functions still hold.
"""

import importlib
from typing import Any

import numpy

from te_select.selecting import copyto, putmask, select, where

_OURS = {"copyto": copyto, "putmask": putmask, "select": select, "where": where}
_IMPORTED = {name: value for name, value in vars(numpy).items() if not name.startswith("_")}
_IMPORTED.pop("ma", None)  # as NumPy does, `__getattr__` imports it when it is used
globals().update(_IMPORTED | _OURS)


def __getattr__(name: str) -> Any:
    """A name of NumPy's that has not been imported, or is not public."""
    if name == "__path__":  # the submodules are numpy's, and would be imported anew
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "ma":
        return importlib.import_module("te_select.ma")
    return getattr(numpy, name)


def __dir__() -> list[str]:
    """List NumPy's names."""
    return dir(numpy)
