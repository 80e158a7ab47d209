"""Checks paths that flags give, before any work."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

from te_select.cli.console import UsageError
from te_select.errors import ArtifactError
from te_select.runtime.artifact import files

_PICTURES = (".png", ".svg", ".pdf")


def check_library(path: Path) -> Path:
    """Check the path of a library that is to be read, and return it, or that of this machine's.

    Raises
    ------
    UsageError
        If it does not end in .so, is missing, or is a folder.
    """
    library = path.with_suffix(".so")
    if path.suffix == ".json" and not files.is_missing(library):
        raise UsageError(f"{path} is the manifest beside a library; expected {library}")
    if _is_model(path):
        raise UsageError(
            f"{path} is no library; expected one like build/mask.so, or --model {path}"
        )
    _check_name("the library", path)
    try:
        path = files.library_here(path)
    except ArtifactError as error:
        raise UsageError(str(error)) from error
    if files.is_missing(path) or files.is_folder(path):
        problem = "is missing" if files.is_missing(path) else "is a folder"
        raise UsageError(f"{path} {problem}; expected a library, as te-select compile -o makes it")
    return path


def check_output(flag: str, path: Path | None) -> Path:
    """Check the path of a library that is to be written, and return it.

    Raises
    ------
    UsageError
        If it is missing, does not end in .so, or has the name of a module of Python's standard
        library.
    """
    if path is None:
        raise UsageError(
            f"{flag} is missing; expected the path of the library, such as build/mask.so"
        )
    _check_name(flag, path)
    try:
        return files.new_library_path(path)
    except ArtifactError as error:
        raise UsageError(f"{flag}: {error}") from error


def check_results(flag: str, path: Path | None, endings: tuple[str, ...]) -> None:
    """Check the path of a file for the results of work that takes minutes.

    Raises
    ------
    UsageError
        If its ending is not in ``endings``, it is a folder, or its folder is missing or cannot be
        written.
    """
    if path is None:
        return
    if endings and path.suffix.lower() not in endings:
        raise UsageError(f"{flag} {path} ends in none of {', '.join(endings)}")
    try:
        if path.is_dir() or (path.exists() and not path.is_file()):
            what = "a folder" if path.is_dir() else "no plain file"
            raise UsageError(f"{flag} {path} is {what}; expected a file")
        with tempfile.TemporaryFile(dir=path.resolve().parent):
            pass
    except ValueError as error:
        raise UsageError(f"{flag} {str(path)!r} is no path: {error}; expected a file") from error
    except OSError as error:
        why = error.strerror or error
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            why = "its folder is missing; create it first"
        raise UsageError(f"{flag} {path} cannot be written: {why}") from error


def check_folder(flag: str, text: str | None, otherwise: str | None = None) -> None:
    """Check a folder that is to be read; ``otherwise`` is a word that is allowed instead.

    Raises
    ------
    UsageError
        If it is missing or not a folder.
    """
    if text is None or text == otherwise:
        return
    try:
        found = bool(text) and Path(text).is_dir()
    except (OSError, ValueError):
        found = False
    if not found:
        alternative = f", or {otherwise}" if otherwise else ""
        raise UsageError(f"{flag} {text!r} is no folder; expected one{alternative}")


def _is_model(path: Path) -> bool:
    """If a model has this ending. te-select-runtime reads no models, and has no formats."""
    try:
        from te_select.frontends.formats import FORMATS  # noqa: PLC0415
    except ModuleNotFoundError:
        return False
    return path.suffix in {each.suffix for each in FORMATS}


def _check_name(what: str, path: Path) -> None:
    try:
        files.library_path(path)
    except ArtifactError as error:
        raise UsageError(f"{what}: {error}; expected, for example, build/mask.so") from error


def check_plot(path: Path | None) -> None:
    """Refuse a picture that cannot be drawn, before the work that it shows."""
    check_results("--plot", path, _PICTURES)
    if path is not None and importlib.util.find_spec("matplotlib") is None:
        raise ArtifactError(f"{path} cannot be drawn without matplotlib; pip install matplotlib")
