"""Where records lie if no folder is given."""

from __future__ import annotations

from pathlib import Path

from te_select.runtime.artifact import user_folders

SHIPPED = Path(__file__).parents[1] / "tuning_logs"
"""The records that the package brings."""


def user_folder() -> Path:
    """The folder of the user's own records."""
    return user_folders.data() / "tuning_logs"


def default_folders() -> list[Path]:
    """Where records are looked for if no folder is given, the user's own first."""
    return [folder for folder in (user_folder(), SHIPPED) if folder.is_dir()]
