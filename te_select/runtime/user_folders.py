"""The folders of the user: by platformdirs where it is installed, else by its rule for Linux."""

from __future__ import annotations

import os
from pathlib import Path

_NAME = "te-select"


def cache() -> Path:
    """The folder of what can be made again.

    Raises
    ------
    RuntimeError
        If there is no home folder.
    """
    return _folder("user_cache_dir", "XDG_CACHE_HOME", "~/.cache")


def data() -> Path:
    """The folder of what the user wants to keep.

    Raises
    ------
    RuntimeError
        If there is no home folder.
    """
    return _folder("user_data_dir", "XDG_DATA_HOME", "~/.local/share")


def _folder(function: str, variable: str, by_default: str) -> Path:
    try:
        import platformdirs  # noqa: PLC0415 - te-select-runtime does without it
    except ModuleNotFoundError:
        base = os.environ.get(variable, "").strip() or by_default
        return Path(base).expanduser() / _NAME
    return Path(getattr(platformdirs, function)(_NAME, appauthor=False))
