"""The folders of the user, by the XDG base directory specification."""

import os
from pathlib import Path


def cache() -> Path:
    """The folder of what can be made again.

    Raises
    ------
    RuntimeError
        If there is no home folder.
    """
    return _folder("XDG_CACHE_HOME", "~/.cache")


def data() -> Path:
    """The folder of what the user wants to keep.

    Raises
    ------
    RuntimeError
        If there is no home folder.
    """
    return _folder("XDG_DATA_HOME", "~/.local/share")


def _folder(variable: str, by_default: str) -> Path:
    root = Path(os.environ.get(variable, "").strip() or by_default)
    return root.expanduser().joinpath("te-select")
