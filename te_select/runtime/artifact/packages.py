"""Versions of installed packages, found without importing them."""

from importlib import metadata


def version(*names: str) -> str | None:
    """The version of the first of these packages that is installed; None if none is."""
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None
