"""Building the whole family, into the cache or to ship; imports tvm."""

import os
from collections.abc import Callable
from pathlib import Path

from te_select.base import cache
from te_select.compiler.family_library import build_family
from te_select.errors import TargetError
from te_select.operator import family
from te_select.runtime.artifact import stored
from te_select.selecting.kernels import library


def build(
    path: str | os.PathLike[str] | None = None,
    target: str = "native",
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Build the whole family.

    Parameters
    ----------
    path
        The ``.so`` to write, with its manifest and its header beside it; None for an entry of the
        cache, for this CPU. What the cache has already is taken.
    target
        A CPU target, or several levels of one, for a library to ship.
    progress
        Called with the number of steps done and of all steps.

    Returns
    -------
    Path
        Where it lies.

    Raises
    ------
    TargetError
        If the target is no CPU, or not this one if it goes into the cache.
    ArtifactError
        If the path or the cache cannot be written, or the path has the name of a module of Python's
        standard library.
    """
    if path is not None:
        path = stored.check_path(path)
    elif target != "native":
        raise TargetError(f"target is {target!r}; expected native, or a path to write to")
    kept = None
    if target == "native":
        name = library.entry(library.WHOLE)  # before: a record may be added meanwhile
        kept = cache.taken(name, lambda image: stored.from_bytes(image, library.WHOLE))
    if path is None and kept:
        return cache.path_of(name)
    built = kept or build_family(family.part_names(), target, progress)
    return cache.write(name, built.image) if path is None else stored.write(built, path)
