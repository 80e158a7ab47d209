"""Two libraries of one workload that differ in their manifests and in their results.

Both are compiled in the way of `te_select.compile`. The second takes the other side, and its
manifest has another ``unroll``. So code of one with a manifest of the other would be noticed.
"""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import numpy as np
from tvm import tirx

import te_select
from te_select.backends.scheduled import Scheduled
from te_select.backends.targets import resolve
from te_select.compiler import build, scheduling
from te_select.files import scratch
from te_select.runtime.artifact import stored
from te_select.runtime.artifact.stored import Stored

WORKLOAD = te_select.Workload((64,), (64,), (64,), "float32")
PLAIN, MIRRORED = 1, 2  # unroll
FILES = ["mask.h", "mask.json", "mask.so"]
"""What an export of one of them leaves in a folder."""
_OTHERS = 12  # more kernels in the second library, so that it is longer
_COND = np.arange(64) % 3 == 0
_THEN = np.float32(1) + np.arange(64, dtype="f4")
_ELSE = -np.arange(64, dtype="f4")


@functools.cache
def pair() -> tuple[Stored, Stored]:
    """The plain library, and the mirrored one."""
    target = resolve("native")
    default = dataclasses.asdict(scheduling.schedule(WORKLOAD, target, False).config)
    plain, mirrored = (
        scheduling.schedule(WORKLOAD, target, config=default | {"unroll": unroll})
        for unroll in (PLAIN, MIRRORED)
    )
    others = [
        scheduling.schedule(te_select.Workload((n,), (n,), (n,), "int32"), target, False)
        for n in range(1, _OTHERS + 1)
    ]
    with scratch.folder() as folder:
        return (
            _built([plain], folder / "plain.so"),
            _built([_exchanged(mirrored), *others], folder / "mirrored.so"),
        )


def judged(loaded: te_select.Kernel | te_select.Library) -> str:
    """What is wrong with one of the two libraries after it was loaded; empty if nothing is.

    A kernel of the second library that was exported alone is right, too. So is a kernel of any
    other config, which takes the plain side.
    """
    kernel = loaded if isinstance(loaded, te_select.Kernel) else loaded[WORKLOAD.name]
    says = kernel.config["unroll"]
    sides = (_ELSE, _THEN) if says == MIRRORED else (_THEN, _ELSE)
    if (kernel(_COND, _THEN, _ELSE) != np.where(_COND, *sides)).any():
        return f"its manifest says unroll {says}, and its code is that of the other library"
    if not isinstance(loaded, te_select.Kernel) and says != MIRRORED:
        return f"its manifest says unroll {says}, and it holds the kernels of the other library"
    return ""


def _built(chosen: list[Scheduled], path: Path) -> Stored:
    build.build_scheduled(chosen, path, resolve("native"))
    return stored.read(path)


def _exchanged(one: Scheduled) -> Scheduled:
    """The kernel whose then is its else."""

    def exchange(function: Any) -> Any:
        cond, then, else_, out = function.params
        swapped = tirx.PrimFunc([cond, else_, then, out], function.body, function.ret_type)
        return swapped.with_attr(dict(function.attrs))

    functions = {variant: exchange(function) for variant, function in one.functions.items()}
    return dataclasses.replace(one, functions=functions)
