"""Versions: te-select's own, which pyproject.toml reads from here, and those of other packages."""

from importlib import metadata

__version__ = "0.4.0"


def installed(*names: str) -> str | None:
    """The version of the first of these packages that is installed, found without importing it."""
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None
