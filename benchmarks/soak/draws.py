"""Random workloads, configs and targets, from a generator of random numbers."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from te_select import Workload
from te_select.backends import builder, schedule_of
from te_select.backends.targets import ResolvedTarget, resolve
from te_select.base import levels
from te_select.errors import SelectError, TargetError
from te_select.operator.access import access_pattern
from te_select.operator.broadcast import Dim
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.records.sizes import representative

_RANKS = (0, 1, 2, 2, 2, 3, 3, 3, 4, 5)
_EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257)
_ELEMENTS = (200, 5_000, 60_000)  # limits for the elements of a workload
_LARGE = 1 << 22  # elements; such a workload is stored past the caches by default
_RULES = ("none", "numpy", "pdpd", *["multidirectional"] * 4)
_NAMES = ("n", "m", "k")
# Beside those of the space: so small that small workloads are cut and stored past caches.
_MORE: Mapping[str, tuple[int, ...]] = {
    "vector_bytes": (16, 32, 64),
    "piece": (1, 2, 3, 5, 8, 64),
    "bytes_per_thread": (0, 1, 64, 4096),
    "stream_from": (0, 1, 4096),
}
# Such that small calls are decided as large ones are, or as on other machines.
_PROFILE: Mapping[str, tuple[int, ...]] = {
    "stream_per_thread": (0, 4096, 1 << 30),
    "stream_per_l3": (0, 1 << 16),
    "fill_per_thread": (0, 4096, 1 << 30),
    "fill_per_l3": (0, 1 << 16),
    "fill_reads": (0, 50, 150),
    "bytes_per_thread": (1 << 10, 1 << 14, 1 << 20),
    "skip": (0, 1, 2),
    "backwards": (0, 1),
}
_TARGETS: tuple[str | dict[str, Any], ...] = (
    "native",
    *levels.NAMES,
    *("core2", "nehalem", "sandybridge", "haswell", "skylake", "skylake-avx512", "cascadelake"),
    *("icelake-server", "sapphirerapids", "btver2", "znver1", "znver2", "znver3", "znver4"),
    {"kind": "llvm", "mcpu": "x86-64-v4", "mattr": ["-avx512vl"]},
    {"kind": "llvm", "mcpu": "x86-64-v4", "mattr": ["-avx512bw"]},
    {"kind": "llvm", "mcpu": "haswell", "mattr": ["-avx2"]},
    {"kind": "llvm", "mcpu": "x86-64", "mattr": ["+ssse3"]},
    {"kind": "llvm", "mcpu": "x86-64", "mattr": ["+sse4.1"]},
)


def _chance(rng: np.random.Generator, share: float) -> bool:
    """True in such a share of the cases."""
    return bool(rng.random() < share)


def workload(rng: np.random.Generator) -> Workload:
    """A workload of any rule and element type, with up to 12 dims; some of them are names."""
    while True:
        cond, then, else_, out = _shapes(rng)
        axis = -1
        rule = str(rng.choice(_RULES))
        if rule == "none":
            cond = then = else_ = out
        elif rule == "pdpd":
            then = out
            axis = int(rng.integers(-1, len(out) + 1))
        try:
            return Workload(cond, then, else_, str(rng.choice(list(ELEMENT_TYPES))), rule, axis)
        except SelectError:  # these do not combine under the rule: draw again
            continue


def _shapes(rng: np.random.Generator) -> tuple[tuple[Dim, ...], ...]:
    """Shapes of cond, then, else and of all together."""
    rank = int(rng.choice(_RANKS)) if _chance(rng, 0.9) else int(rng.integers(6, 13))
    most = int(rng.choice(_ELEMENTS, p=(0.3, 0.5, 0.2)))
    names = 0.5 if _chance(rng, 0.4) else 0.0
    out: list[Dim] = []
    for _ in range(rank):  # the innermost axis first, which may so be long
        fitting = [extent for extent in _EXTENTS if extent <= max(1, most)]
        extent = 0 if _chance(rng, 0.01) else int(rng.choice(fitting))
        most //= max(1, extent)
        out.insert(0, str(rng.choice(_NAMES)) if _chance(rng, names) else extent)

    mixed = _chance(rng, 0.6)  # most neighbouring axes have other operands move along them

    def operand() -> tuple[Dim, ...]:
        lead = int(rng.integers(rank + 1)) if _chance(rng, 0.2) else 0
        stays = 0.4 if mixed else rng.random() if _chance(rng, 0.8) else 0.0  # how much broadcasts
        return tuple(1 if _chance(rng, stays) else dim for dim in out[lead:])

    return operand(), operand(), operand(), tuple(out)


def large(rng: np.random.Generator) -> Workload:
    """A workload of some megabytes, of one of the common patterns."""
    width = int(rng.choice([1, 3, 20, 100, 1021, 4099]))
    rows = (_LARGE + int(rng.integers(1000))) // width
    full = (rows, width)
    row = (1, width)
    column = (rows, 1)
    patterns = ((full, full, full), (column, full, full), (full, full, ()), (full, row, column))
    cond, then, else_ = patterns[int(rng.integers(len(patterns)))]
    dtype = str(rng.choice(["uint8", "float16", "float32"]))
    return Workload(cond, then, else_, dtype, "multidirectional")


def config(rng: np.random.Generator, of: Workload, target: ResolvedTarget) -> dict[str, Any]:
    """Any config that the schedule can follow: of its space, or with knobs for small workloads."""
    rules = schedule_of(target.kind)
    pattern = access_pattern(of)
    default = rules.default_config(pattern, target.tvm)
    space = rules.space(access_pattern(representative(of)), target.tvm)
    while True:
        drawn = dataclasses.asdict(default)
        for knob, candidates in space.items():
            values = [*candidates, *_MORE.get(knob, ())]
            drawn[knob] = values[int(rng.integers(len(values)))]
        try:
            rules.Config(**drawn).checked(pattern)
        except ValueError:  # such as rows where the innermost loop is long
            continue
        return drawn


def profile(rng: np.random.Generator) -> str:
    """A text for TE_SELECT_PROFILE: what the machine decides."""
    return ",".join(f"{key}={rng.choice(values)}" for key, values in _PROFILE.items())


@functools.cache
def targets() -> tuple[ResolvedTarget, ...]:
    """The targets whose code this CPU runs."""
    found = []
    for name in _TARGETS:
        try:
            target = resolve(name)
        except TargetError:  # this LLVM does not know it
            continue
        if not builder(target.kind).missing(target):
            found.append(target)
    return tuple(found)
