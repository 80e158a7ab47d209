"""The function `te_select.compile`: a library from the cache, else from the compiler."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from te_select.backends import build_key
from te_select.base import cache, forks, kinds, variables
from te_select.base.imports import not_installed
from te_select.errors import ArtifactError, ToolchainError, caught, notices
from te_select.operator.workload import Workload
from te_select.records import folders, required
from te_select.runtime.artifact import stored
from te_select.runtime.call import loading
from te_select.runtime.call.kernel import Kernel

if TYPE_CHECKING:
    from te_select.compiler.scheduling import TuningLogs
    from te_select.records.required import Required

_DIGITS = 12  # of the digest of a call; 48 bits
_LONGEST = 200  # letters of a workload's name, so that the name of a file has at most 255


@forks.no_fork_during()
def compile(
    workload: Workload,
    target: str | dict[str, Any] = "native",
    tuning_logs: TuningLogs = None,
    *,
    config: Mapping[str, Any] | None = None,
    require_record: Required = False,
) -> Kernel:
    """Compile a workload to a kernel.

    What was compiled before, by this process or another, comes from the cache, without TVM. An
    entry is found only if everything is as it was: the workload, the target, the config and the
    records, te-select, TVM, tvm-ffi, the C compiler and the CPU. Where nothing can be compiled any
    more, the entry of the same call that was used last serves, if this CPU can run it.

    Parameters
    ----------
    workload
        What to compile.
    target
        ``"native"``, a level such as ``"x86-64-v3"``, an LLVM CPU name, ``"cuda"`` (the GPUs of
        this machine), ``"cuda:sm_80,sm_90"``, or a TVM target as JSON.
    tuning_logs
        None for the user's own records and those shipped with the package, a folder for those in
        it only, False for none. The workload's own record is taken, else the nearest, else the
        default config.
    config
        Knobs of the schedule by hand, such as ``{"piece": 4096}``. The others are those of the
        default config; records are not used.
    require_record
        True to fail if the workload has no record of its own. With ``"near"`` the nearest record is
        enough.

    Returns
    -------
    Kernel
        The kernel, ready to be called.

    Raises
    ------
    TargetError
        If the target is not known, or this CPU lacks what it needs; `export` cross-compiles.
    ToolchainError
        If there is no working C compiler, or no CUDA compiler for a CUDA target.
    ArtifactError
        If there is no room for temporary files.
    TuningError
        If the folder of tuning logs is missing, or holds no record that can be used; or if there is
        no record where one is required.
    ArgumentError
        If the schedule has no such knob, or cannot follow it for this workload.

    Warns
    -----
    RuntimeWarning
        If the cache cannot be written, once in a process.
    """
    required.check(require_record, tuning_logs, config)
    name = _entry(workload, target, tuning_logs, config)
    kept = functools.partial(_from_cache, workload=workload, require_record=require_record)
    if name is not None and (found := kept(name)) is not None:
        return found
    line = "te_select.compile: building a kernel, once ..."
    try:
        with notices.shown(line, lambda: made.in_effect):
            variables.check_building("a kernel")
            try:
                from te_select.compiler.build import kernel  # noqa: PLC0415 - imports tvm
            except ModuleNotFoundError as error:
                raise not_installed("te_select.compile", error) from error

            made = kernel(
                workload, target, tuning_logs, config=config, require_record=require_record
            )
    except ToolchainError:
        if name is not None and (found := _used_last(name, kept)) is not None:
            return found
        raise
    # Records may have been added meanwhile.
    after = _entry(workload, target, tuning_logs, config)
    if name is not None and name == after and kinds.kind(made.kind).cached:
        cache.keep(name, stored.read(made.path).image)
    return made


def _entry(workload: Any, target: Any, tuning_logs: Any, config: Any) -> str | None:
    """The name of the entry; None if the compiler is to judge the arguments."""
    if not isinstance(workload, Workload) or (config and tuning_logs not in (None, False)):
        return None
    try:
        asked = json.dumps([workload.to_json(), target, config, str(tuning_logs)], sort_keys=True)
        records = ["no records"] if tuning_logs is False else _records(tuning_logs)
    except caught(TypeError, ValueError, RecursionError, OSError, ArtifactError):
        return None
    call = hashlib.sha256(asked.encode()).hexdigest()[:_DIGITS]
    return cache.name_of(f"{workload.name[:_LONGEST]}_{call}", build_key.digest(asked, *records))


def _records(tuning_logs: Any) -> list[str | bytes]:
    """The logs of all targets: to tell which folders this target reads would take tvm."""
    given = folders.default_folders() if tuning_logs is None else [Path(tuning_logs)]
    found = folders.contents(given)
    if tuning_logs is not None and not found:
        raise FileNotFoundError(given[0])
    return found


def _used_last(name: str, kept: Callable[..., Kernel | None]) -> Kernel | None:
    """The kernel of the same call that was used last, of whatever compiler, and can run here."""
    call = name.rpartition("-")[0]
    names = (path.name for path in cache.entries())
    same = (each for each in names if each.rpartition("-")[0] == call)
    found = (kept(each, damaged=False) for each in same)
    return next((kernel for kernel in found if kernel is not None), None)


def _from_cache(
    name: str, workload: Workload, require_record: Required, *, damaged: bool = True
) -> Kernel | None:
    """The kernel in the cache, if it is of the workload and its configs are those of records."""

    def load(image: bytes) -> Kernel | loading.Library:
        return loading.load_image(image, cache.path_of(name))

    made = cache.taken(name, load, damaged=damaged)
    if not isinstance(made, Kernel) or made.workload != workload:
        return None
    return made if all(required.meets(each, require_record) for each in made.origins) else None
