"""Where records lie, and what their files are called."""

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from te_select.base import on_disk
from te_select.errors import ArtifactError, TuningError, caught, suppress
from te_select.operator.broadcast import shown

# The records that the package brings.
SHIPPED = Path(__file__).parents[1] / "tuning_logs"
# The folder, within each folder of logs, of those of `te_select.where`'s kernels.
#
# They are apart because a kernel of the family serves other sizes than those it was measured at.
FAMILY = "where"
# The file of a target's records.
SESSIONS = "sessions.json"
# The files that MetaSchedule would write of them.
WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")


def user_folder() -> Path:
    """The folder of the user's own records; TuningError if there is no home folder."""
    try:
        return on_disk.user_folder("XDG_DATA_HOME", "~/.local/share").joinpath("tuning_logs")
    except caught(RuntimeError) as error:
        expected = "HOME or XDG_DATA_HOME to be a folder, or a folder of logs"
        raise TuningError(
            f"there is no folder of your records: {error} Expected {expected}"
        ) from error


def default_folders(within: str = "") -> list[Path]:
    """Where records are looked for if no folder is given, the user's own first.

    Parameters
    ----------
    within
        `FAMILY`, or nothing for the records of all other kernels.
    """
    roots = [SHIPPED]
    with suppress(TuningError):  # there is no home folder
        roots.insert(0, user_folder())
    return [folder for root in roots if on_disk.is_folder(folder := root.joinpath(within))]


def of_target(target: str) -> str:
    """The folder of a target's records: the target's name in records, or a hash if that is JSON."""
    if _PLAIN_NAME.fullmatch(target):
        return target
    return f"target-{hashlib.sha256(target.encode()).hexdigest()[:10]}"


def of_targets(logs: Path) -> list[Path]:
    """The folders in ``logs`` that hold records, sorted.

    Raises
    ------
    TuningError
        If there is no such folder, or it cannot be read.
    """
    try:
        return sorted(path.parent for path in logs.glob(f"*/{SESSIONS}"))
    except caught(OSError) as error:
        raise TuningError(f"{logs} cannot be read: {error.strerror or error}") from error


def given(logs: str | Path | None, expected: str) -> Path:
    """The folder of logs that a caller gives, None for the user's; TuningError if it is no path."""
    try:
        return user_folder() if logs is None else Path(logs)
    except caught(TypeError) as error:
        message = f"tuning_logs {shown(logs)} is no path; expected {expected}"
        raise TuningError(message) from error


def check(logs: Path) -> None:
    """Raise TuningError if ``logs`` is not a folder."""
    if not on_disk.is_folder(logs):
        raise TuningError(
            f"{shown(str(logs))} is missing, or no folder; expected a folder that te-select tune "
            "has written"
        )


def contents(
    given: Iterable[Path], without: Callable[[bytes], bool] = lambda _line: False
) -> list[str | bytes]:
    """Content of a cache key: the lines of the logs in some folders; nothing if they are empty.

    Parameters
    ----------
    given
        The folders.
    without
        Which lines are left out.

    Raises
    ------
    OSError, ArtifactError
        If a file cannot be read.
    """
    found = []
    for folder in given:
        own: list[str | bytes] = []
        for path in sorted(each.joinpath(SESSIONS) for each in folder.iterdir()):
            lines = on_disk.read(path).split(b"\n") if on_disk.is_there(path) else []
            said = [line for line in lines if line and not without(line)]
            own += [path.parent.name, *said] if said else []
        found += ["folder", *own] if own else []
    return found


def read(path: Path) -> bytes:
    """The bytes of a file of records or trials; none if it is missing.

    Raises
    ------
    TuningError
        If it cannot be read, or is not a regular file (reading a pipe would wait).
    """
    try:
        return on_disk.read(path, "a tuning log")
    except caught(ArtifactError) as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return b""
        raise TuningError(str(error)) from error
