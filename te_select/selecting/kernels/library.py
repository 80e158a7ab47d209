"""The libraries of the family that this process has, and where they come from.

In this order: one that was given by `use`; the cache; the one that the wheel brings; a build, which
goes into the cache. Without a compiler, the entry of the cache that was used last and that this
CPU can run.
"""

import ctypes
import gzip
import io
import os
import struct
import threading
import time
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from te_select.backends import build_key
from te_select.base import cache, forks, on_disk, variables
from te_select.base.imports import broken_torch_explained, not_installed
from te_select.errors import ArtifactError, SelectError, caught, notices, suppress, warn
from te_select.operator import family
from te_select.records import doubt, folders
from te_select.runtime.artifact import embedded, stored
from te_select.runtime.artifact.manifest import Manifest
from te_select.runtime.call.cpu import features
from te_select.runtime.call.extension import extension
from te_select.runtime.call.image import call_for_int, load_bytes

# A library of several levels, which only wheels have (``make wheel``). Beside it lies its seal: the
# library without the machine code, compressed. So strip and patchelf may rewrite the library, and
# what runs is as it was built (docs/packaging.md).
PREBUILT = Path(__file__).parents[2] / "prebuilt" / "libte_select_where.so"
SEAL = ".seal"
WHOLE = "all"  # in the place of a part: all of them
_MOST_BYTES = 64 << 20  # ten times as many as the library has
_STACK = 8 << 20  # bytes, as the first thread has; importing TVM in 64 KB ends the process
_lock = threading.RLock()
_waited = threading.local()
_loaded: set[str] = set()  # the parts that are there
_failed: set[str] = set()  # those that cannot be had
_forbidden: set[str] = set()  # and those that may not be built
_first: ctypes.CDLL | None = None  # it is given the kernels of all others


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603 - a forked child has one of its own: its parent's may be held
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def function_of_tensors(name: str, type_of_tensors: type) -> Any:
    """A function of the loaded kernels, for tensors of one type; it counts its calls.

    None if there are no kernels, or the tensors do not have DLPack's exchange API.
    """
    if _first is None:
        return None
    if not hasattr(type_of_tensors, "__dlpack_c_exchange_api__"):
        with forks.no_fork_during():
            import tvm_ffi  # noqa: F401, PLC0415 - it gives the API to releases of torch without it
    address = ctypes.cast(_first[f"__tvm_ffi_{name}"], ctypes.c_void_p).value
    try:
        return extension.tensor_entry(address, type_of_tensors)
    except caught(AttributeError, ValueError):
        return None


def fetch(part: str, *, may_raise: bool = True) -> bool:
    """Load a part of the family, building it if that is needed.

    Parameters
    ----------
    part
        Its name, see `te_select.operator.family.part_names`.
    may_raise
        Whether ``TE_SELECT_BUILD=error`` is obeyed.

    Returns
    -------
    bool
        Whether it is there. Where it cannot be had, one warning says why, unless the user forbids
        to build it.

    Raises
    ------
    ToolchainError
        If it cannot be had and ``TE_SELECT_BUILD`` is ``error``.
    ArgumentError
        If that variable has a wrong value.
    """
    begin = time.perf_counter()
    try:
        return _fetch(part, may_raise)
    finally:
        _waited.seconds = seconds_of_this_thread() + time.perf_counter() - begin


def seconds_of_this_thread() -> float:
    """How long calls of this thread have waited for kernels that were loaded or built."""
    return getattr(_waited, "seconds", 0.0)


def _fetch(part: str, may_raise: bool) -> bool:
    with _lock:
        if part in _loaded:
            return True
        if part in _failed or part in _forbidden:
            return False
        try:
            image = _from_cache(part) or _prebuilt([part]) or _build(part)
            if part not in _loaded:
                _load(_checked(image, part))
        except (SelectError, ImportError) as error:
            mode = variables.building()
            if mode == "error" and may_raise:
                raise
            (_forbidden if mode else _failed).add(part)
            if not mode:
                text = f"te_select.where has no kernels, and leaves the work to NumPy: {error}"
                warn(text, once="where")
            return False
        return True


def use(path: str | os.PathLike[str]) -> None:
    """Take the kernels of a library that `te-select where build -o` has written.

    Parameters
    ----------
    path
        The ``.so``, found as `te_select.load` finds it. No compiler is needed.

    Raises
    ------
    ArtifactError
        If it is no such library, is damaged, or this CPU cannot run it.
    """
    path = on_disk.library_here(path)
    image = on_disk.read(path, "a library as te-select where build makes it")
    checked = _checked(image, str(path))
    if not _held(checked.manifest):
        raise ArtifactError(
            f"{path} holds no kernels of where(); build it by te-select where build"
        )
    with _lock:
        _load(checked)


def fetch_missing_kernel(number: int) -> bool:
    """Load a kernel of rows that would have served many elements, by the C half's number of it."""
    return fetch(family.part_of_missing_kernel(number), may_raise=False)


def reason(found: str) -> str:
    """Why a call was left, for users: a kernel may be missing because none may be built."""
    return "building is forbidden" if found == extension.NO_KERNEL and _forbidden else found


def entry(part: str) -> str:
    """The file name of a part that is built here, for this CPU, by the records that there are."""
    try:
        given = folders.default_folders(folders.FAMILY)
        records = folders.contents(given, without=doubt.is_line_unsure)
    except caught(OSError, ArtifactError):  # a build says what is wrong with them
        records = []
    return cache.name_of(f"where_{part}", build_key.digest(*records))


def whole_file() -> Path:
    """The file of a library with all parts, for programs that load it themselves.

    Returns
    -------
    Path
        An entry of the cache. It has the kernels that the wheel brings, or is built.

    Raises
    ------
    SelectError
        If it cannot be built, or cannot be kept in the cache.
    """
    name = entry(WHOLE)
    parts = family.part_names()
    with _lock:
        if _from_entry(name, parts) is not None:
            return cache.path_of(name)
        try:
            what = "all kernels (in a minute or more)"
            return cache.write(name, _prebuilt(parts) or _built(what, parts))
        except ModuleNotFoundError as error:
            raise not_installed("to build kernels", error) from error


def _held(manifest: Manifest) -> list[str]:
    """The parts that a library holds as a whole."""
    return family.held((record.workload for record in manifest.kernels), manifest.stages)


def _load(checked: stored.Stored) -> None:
    global _first  # noqa: PLW0603 - the first of a process
    library = load_bytes(checked.image, checked.sha256, Path("te_select-where"))
    address = call_for_int(library, "te_select_where_library")
    try:
        extension.install(address)
    except caught(ValueError) as error:
        raise ArtifactError(str(error)) from error
    _first = _first or library
    _loaded.update(_held(checked.manifest))


def _checked(image: bytes, place: str) -> stored.Stored:
    """An image that is as it was sealed, for this CPU."""
    found = stored.from_bytes(image, place)
    if lacking := features.missing(found.manifest.target.get("cpu_features", ())):
        raise ArtifactError(f"{place} needs {', '.join(lacking)}, which this CPU lacks")
    return found


def _from_cache(part: str) -> bytes | None:
    names = (entry(WHOLE), entry(part))
    return next((image for name in names if (image := _from_entry(name, [part]))), None)


def _from_entry(name: str, parts: Iterable[str], *, damaged: bool = True) -> bytes | None:
    """An entry that holds some parts."""

    def holding(image: bytes) -> bytes | None:
        return image if set(parts) <= set(_held(_checked(image, name).manifest)) else None

    return cache.taken(name, holding, damaged=damaged)


def _prebuilt(parts: Iterable[str]) -> bytes | None:
    """The library that the wheel brings, if it has some parts and this CPU can run it."""
    seal = PREBUILT.with_suffix(SEAL)
    if on_disk.is_missing(PREBUILT) and on_disk.is_missing(seal):
        return None
    try:
        image = on_disk.read(PREBUILT)
        with gzip.open(io.BytesIO(on_disk.read(seal))) as file:
            image = embedded.unsealed(image, file.read(_MOST_BYTES))
        manifest = _checked(image, str(PREBUILT)).manifest
    except caught(ArtifactError, OSError, EOFError, MemoryError, struct.error, zlib.error):
        why = "it or its seal is missing, unreadable, damaged or for another CPU"
        again = "install its package again, from where it came"
        warn(f"{PREBUILT} cannot be used, as {why}: {again}", once="where")
        return None
    return image if set(parts) <= set(_held(manifest)) else None


def _build(part: str) -> bytes:
    """Build a part, and put it into the cache."""
    name = entry(part)  # before: a record may be added meanwhile
    try:
        image = _built(family.in_words(part), [part])
    except ModuleNotFoundError as error:
        return _used_last(part, not_installed("to build kernels", error))
    except (SelectError, ImportError) as error:
        return _used_last(part, error)
    cache.keep(name, image)
    return image


def _built(what: str, parts: list[str]) -> bytes:
    """Build parts. A thread's stack may be too small for TVM, so a thread of its own does it."""
    variables.check_building("kernels of te_select.where")
    with (
        notices.shown(f"te_select.where: building {what}, once ...", _advice),
        broken_torch_explained(),
    ):
        if threading.current_thread() is threading.main_thread():
            return _build_here(parts)
        with ThreadPoolExecutor(1) as another:
            before = threading.stack_size(_STACK)
            try:
                built = another.submit(_build_here, parts)
            finally:
                threading.stack_size(before)
            return built.result()


def _advice() -> dict[str, str]:
    from te_select.backends.cpu.environment import profile_here  # noqa: PLC0415 - to build

    return profile_here().advice


@forks.no_fork_during()  # a child could wait for ever for a lock of these imports
def _build_here(parts: list[str]) -> bytes:
    from te_select.compiler.family_library import build_family  # noqa: PLC0415 - imports tvm

    return build_family(parts, "native").image


def _holds(name: str, part: str) -> bool:
    """Whether an entry of whatever digest holds a part."""
    digest = name.removesuffix(".so").rpartition("-")[2]
    return name in (cache.name_of(f"where_{each}", digest) for each in (part, WHOLE))


def _used_last(part: str, why: Exception) -> bytes:
    """Load the entry used last that holds a part and fits; ``why`` there is none to build."""
    for path in cache.entries():
        name = path.name
        if _holds(name, part) and (image := _from_entry(name, [part], damaged=False)):
            with suppress(ArtifactError):  # another te-select made it, for another extension
                _load(_checked(image, name))
                return image
    raise why
