"""Where records lie if no folder is given."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from te_select.errors import suppress
from te_select.records import snapshot
from te_select.runtime.artifact import files, user_folders

SHIPPED = Path(__file__).parents[1] / "tuning_logs"
"""The records that the package brings."""
FAMILY = "where"
"""The folder, within each folder of logs, of those of `te_select.where`'s kernels.

They are apart because a kernel of the family is no kernel of the sizes that it was measured at.
"""
_FILES = (*snapshot.FILES, snapshot.PENDING)


def user_folder() -> Path:
    """The folder of the user's own records."""
    return user_folders.data().joinpath("tuning_logs")


def default_folders(within: str = "") -> list[Path]:
    """Where records are looked for if no folder is given, the user's own first.

    Parameters
    ----------
    within
        `FAMILY`, or nothing for the records of all other kernels.
    """
    roots = [SHIPPED]
    with suppress(RuntimeError):  # there is no home folder
        roots.insert(0, user_folder())
    return [folder for root in roots if files.is_folder(folder := root.joinpath(within))]


def contents(given: Iterable[Path]) -> list[str | bytes]:
    """All that the logs in some folders say, to make a digest of it.

    Raises
    ------
    OSError, ArtifactError
        If a file cannot be read.
    """
    found: list[str | bytes] = []
    for folder in given:
        found.append("folder")
        of_targets = [each.joinpath(name) for each in folder.iterdir() for name in _FILES]
        for path in sorted(filter(files.is_there, of_targets)):
            found += [path.relative_to(folder).as_posix(), files.read(path)]
    return found
