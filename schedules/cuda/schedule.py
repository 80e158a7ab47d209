"""The CUDA schedule: one flat run of elements, cut into tiles; a block of threads takes a tile.

For a cond of rows over a [R, C] output, and likewise for every access pattern::

    for r in R:                            for tile in blockIdx.x(R * C / 4096):
      for c in C:                  -->       for t in threadIdx.x(256):
        out[r, c] = select(...)                for v in 4:                    # the span
                                                 for lane in 4:
                                                   out[tile, v, t, lane] = select(...)

1. All loops are fused. So the grid is balanced for every shape, and only the last tile is partial.
   `out` and the operands that move along every loop are as aligned as their pointers.
2. A tile is threads times vectors times the lanes of 16 bytes. Vectors lie outside threads, so the
   accesses of a warp are contiguous.
3. The loop of a thread's vectors is annotated with the span that takes its place (`span`). If an
   operand does not move along every loop, the span finds its offset by dividing: once per vector,
   if rows are whole vectors. That is cheap beside 16 bytes of memory.

Rows as blocks of their own were considered and not built. Short rows leave threads idle, rows of
odd length begin unaligned, and both need a second family of spans. The gain would be one division
per vector, and no bytes.

No constant here has been measured; each says from what it was reasoned. Little's law gives the
bytes in flight: 4.3 TB/s for about 0.7 us is 3 MB, or 23 KB on each of the 132 SMs of an H200.
The defaults aim at twice that, because a masked side is loaded only after its cond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm import s_tir, tirx
from tvm.target import Target

from te_select.operator.access import AccessPattern
from te_select.schedules import knobs, leaf
from te_select.schedules.cuda.span import Span, moves
from te_select.schedules.knobs import knob
from te_select.schedules.seam import Variant

THREADS = (128, 256, 512, 1024)
VECTORS = (1, 2, 4, 8)
MAX_BLOCKS = (0, 1056, 2112, 4224)  # no limit, and 8, 16, 32 blocks per SM of an H200
LARGEST_GRID = 2**31 - 1  # blocks on the x axis, on every arch
BLOCK = 256  # divides the 2048 threads of an SM by any register count up to 64
IN_FLIGHT = 4  # vectors per thread; with 1024 threads on an SM, 64 KB for each operand that is read
NARROW = (1, 2)  # bytes per element
IN_FLIGHT_NARROW = 2  # vectors; masks take 2 to 4 registers each, and 4 would halve the occupancy
ENOUGH_BLOCKS = 1056  # 8 for each SM of an H200; smaller work takes fewer vectors per thread
STREAM_FROM_BYTES = 1 << 25  # of output; the L2 of an H200 has 50 MB, for broadcast operands


def _skips(pattern: AccessPattern, _default: Any, _target: Any) -> tuple[bool, ...]:
    return (False, True) if pattern.loops and "c" in pattern.loops[-1].movers else (True,)


@dataclass(frozen=True)
class Config:
    """The knobs of the CUDA schedule.

    Parameters
    ----------
    threads
        Threads per block.
    vectors
        Vectors of 16 bytes per thread and tile.
    stream
        Whether operands that are read once, and out, are marked as the first to leave the caches.
    skip
        Whether a vector of a side that cond does not select is left unread. Loads then wait for
        cond.
    max_blocks
        The most blocks of the grid; each takes every ``max_blocks``-th tile. 0 for one per tile.
    """

    threads: int = knob(THREADS, number=True)
    vectors: int = knob(VECTORS, number=True)
    stream: bool = knob((False, True))
    skip: bool = knob((False, True), _skips)
    max_blocks: int = knob(range(LARGEST_GRID + 1), lambda *_: MAX_BLOCKS)

    def checked(self, _pattern: AccessPattern, _target: Any = None) -> Config:
        """Return this config, or raise ValueError if the schedule cannot follow it."""
        knobs.check(self)
        return self


# The knobs that may be random variables of MetaSchedule. The others change the structure.
NUMBERS = tuple(name for name, each in knobs.of(Config).items() if each.number)
config_from = partial(leaf.config_from, Config)
config_of = partial(leaf.config_of, Config)


def default_config(pattern: AccessPattern, target: Any) -> Config:
    """Choose a good config without measuring; one default serves every arch."""
    most = IN_FLIGHT_NARROW if pattern.width in NARROW else IN_FLIGHT
    known = pattern.out_bytes
    vectors = max(
        (v for v in VECTORS if v <= most and _blocks(known, v) >= ENOUGH_BLOCKS),
        default=1,
    )
    kept = any(letter in "iop" for letter in moves(pattern))
    stream = kept and known is not None and known >= STREAM_FROM_BYTES
    skip = vectors > 1 or _skips(pattern, None, target)[0]  # small work would wait twice for memory
    return Config(BLOCK, vectors, stream, skip, max_blocks=0)


def space(pattern: AccessPattern, target: Any) -> Mapping[str, Sequence[Any]]:
    """List the candidates of every knob."""
    return knobs.space(default_config(pattern, target), pattern, target)


def variants(_pattern: AccessPattern, config: Config) -> list[Variant]:
    """The functions to make: a single one, for all sizes."""
    return [Variant("", config, leaf="vectors of a tile")]


def apply(sch: s_tir.Schedule, pattern: AccessPattern, target: Any, config: Config) -> None:
    """Schedule the definition, as described at the top of this module."""
    block = leaf.block_to_schedule(sch, pattern)
    if block is None:
        return
    loops = sch.get_loops(block) or [sch.add_unit_loop(block)]
    flat = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    span = span_of(pattern, config)
    tile, vector, thread, lane = sch.split(flat, [None, config.vectors, config.threads, span.lanes])
    sch.reorder(tile, thread, vector, lane)
    tiles = sch.get(tile).extent
    most = config.max_blocks
    if isinstance(tiles, tirx.IntImm):
        most = _cap(most, tiles.value)
    if most > 0:
        turn, tile = sch.split(tile, [None, most])
        sch.reorder(tile, thread, turn, vector)
    sch.bind(tile, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    leaf.annotate(sch, vector, span.symbol, config)


def dedup_key(
    pattern: AccessPattern, config: Config, cpus: int | None = None
) -> tuple[object, ...]:
    """Tell configs apart by the span and the grid that they lead to; CPUs make no difference."""
    span = span_of(pattern, config)
    tiles = -(-(pattern.elements or 0) // (config.threads * config.vectors * span.lanes))
    most = _cap(config.max_blocks, tiles)
    return knobs.effect(config, {"stream": span.symbol, "skip": None, "max_blocks": most})


def without_machine_knobs(_pattern: AccessPattern, _target: Any, config: Config) -> Config:
    """The config unchanged: every knob that was measured on one architecture may serve another."""
    return config


def may_share_record(pattern: AccessPattern, measured: AccessPattern, target: Target) -> bool:
    """Whether the default configs of two patterns are the same.

    If a name decides the size, the default is a guess. Then a measured config of any size is
    better.
    """
    default = default_config(pattern, target)
    return pattern.out_bytes is None or default == default_config(measured, target)


def span_of(pattern: AccessPattern, config: Config) -> Span:
    """Choose the span for the leaf of a pattern."""
    cond, then, else_ = moves(pattern)
    return Span(pattern.width, cond, then, else_, config.stream, config.skip)


def _cap(max_blocks: int, tiles: int) -> int:
    """The most blocks of the grid; 0 if every tile has its own."""
    most = max_blocks or LARGEST_GRID
    return most if tiles > most else 0


def _blocks(out_bytes: int | None, vectors: int) -> int:
    """Number of tiles of an output; if a name decides it, a number that is large enough."""
    return ENOUGH_BLOCKS if out_bytes is None else out_bytes // (16 * BLOCK * vectors)
