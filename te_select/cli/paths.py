"""Checks paths that flags give, before any work."""

import importlib.util
from pathlib import Path

from te_select.base import atomic, on_disk
from te_select.cli.flags import of_flag
from te_select.errors import ArtifactError

_PICTURES = (".png", ".svg", ".pdf")


def check_library(path: Path) -> Path:
    """Check the path of a library that is to be read, and return it, or that of this machine's.

    Raises
    ------
    UsageError
        If it does not end in .so, or is missing.
    """
    with of_flag("the library"):
        if path.suffix != ".so":
            raise ValueError(
                f"{path} does not end in .so; expected {path.with_suffix('.so')}, or "
                f"--model {path} for a model"
            )
        path = on_disk.library_here(path)
        if not path.is_file():
            problem = "is missing" if on_disk.is_missing(path) else "is no plain file"
            raise ValueError(f"{path} {problem}; expected one, as te-select compile -o makes it")
    return path


def check_output(path: Path) -> Path:
    """Check the path of a library that is to be written, and return it.

    Raises
    ------
    UsageError
        If it does not end in .so, or has the name of a module of Python's standard library.
    """
    with of_flag("-o"):
        return on_disk.new_library_path(path)


def check_plot(path: Path | None) -> None:
    """Refuse a picture that cannot be drawn, and make its folder, before the work that it shows."""
    if path is None:
        return
    with of_flag("--plot"):
        if path.suffix.lower() not in _PICTURES:
            raise ValueError(f"{path} ends in none of {', '.join(_PICTURES)}")
        if not on_disk.is_missing(path) and not path.is_file():
            raise ValueError(f"{path} is no plain file; expected one")
        atomic.check_folder(path.resolve())
    if importlib.util.find_spec("matplotlib") is None:
        raise ArtifactError(f"{path} cannot be drawn without matplotlib; pip install matplotlib")
    path.parent.mkdir(parents=True, exist_ok=True)
