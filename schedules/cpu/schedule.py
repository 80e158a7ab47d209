"""The CPU schedule: fuse loops, cut them into pieces, run pieces in parallel; a span does the rest.

A span is a small kernel for the innermost loop or loops. The call says how long they are.

An output [R, 3] with a row-constant cond; other access patterns are alike::

    for r in R:                                    for piece in parallel(R / rows_per_piece):
      for x in 3:                       -->          span(rows of 3, cond per row, ...)
        out[r, x] = select(...)

1. Neighbouring loops with the same broadcast operands are fused (`te_select.operator.access`).
2. The innermost loop is the leaf. If it is short, the leaf is the two innermost loops: rows that
   share vectors, or that are walked end to end.
3. The leaf is cut into pieces. The pieces and the outer loops are fused to the parallel loop. Each
   call decides how many threads run it, by the bytes that it moves.
4. The leaf is annotated with the span that takes its place (`span`). The span also handles the
   tail, odd extents and named dims.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from tvm import s_tir, tirx
from tvm.target import Target

from te_select.operator.access import AccessPattern
from te_select.operator.broadcast import bound
from te_select.schedules import knobs
from te_select.schedules import leaf as notes
from te_select.schedules.cpu import isa
from te_select.schedules.cpu.config import (
    BY_MACHINE,
    NUMBERS,  # noqa: F401 - of the seam
    OF_MACHINE,
    Config,
    long_from,
    share_vectors,
    skippable,
    threads,
)
from te_select.schedules.cpu.defaults import default_config
from te_select.schedules.cpu.span import Span
from te_select.schedules.seam import Expression, Variant

# TVM takes seconds to simplify the indices of six fused loops with names, and minutes for forty.
FUSED_LOOPS = 4
# Rows of a piece for threads if their length has a name. With 4096, [3000,64] ran on one thread;
# with 256, [2^21,3] took 1.2x the time (Emerald Rapids, float32). On one thread pieces only cost:
# [33333,3] of float16 took 1.25x the time with them (Zen 5).
NAMED_ROWS = 512
ENOUGH_TASKS = 256  # so many keep the cores of a large machine equally busy

config_from = partial(notes.config_from, Config)
config_of = partial(notes.config_of, Config)


def variants(pattern: AccessPattern, config: Config) -> list[Variant]:
    """The functions to make of a config.

    ``"short_rows"``
        If the length of a row has a name: for calls whose rows are not long.
    ``"end_to_end"``
        Rows of medium length, in calls that store past the cache. Calls that do not are 1.4-1.8x
        faster row by row (Emerald Rapids, output of 512 KB), so they take ``""``.
    ``"small"``
        If dims have names: for calls that move so little that one thread does it in the caches.
    ``""``
        For all other calls.
    """
    main = config
    found = []
    if config.rows and pattern.loops[-1].extent is None:
        main = replace(config, rows=False)
        piece = min(config.piece, NAMED_ROWS) if config.bytes_per_thread else config.piece
        short = replace(config, piece=piece)
        found.append(Variant("short_rows", short, partial(_rows_are_not_long, pattern)))
    elif config.rows and config.stream_from == BY_MACHINE and not share_vectors(pattern):
        # As many elements as a piece of rows.
        piece = config.piece * (pattern.loops[-1].extent or 1)
        main = replace(config, rows=False, stream_from=0, piece=piece)
        found.append(Variant("end_to_end", config, partial(_is_set, "stream")))
    if config.bytes_per_thread and pattern.elements is None:
        small = replace(main, bytes_per_thread=0, stream_from=0, skip=0)
        found.append(Variant("small", small, partial(_is_set, "small")))
    return [
        replace(each, leaf=span_of(pattern, each.config).kind)
        for each in (*found, Variant("", main))
    ]


def _rows_are_not_long(
    pattern: AccessPattern,
    sizes: Mapping[str, Expression],
    _flags: Mapping[str, Expression],
) -> Expression:
    one: Expression = tirx.IntImm("int64", 1)
    return math.prod(bound(pattern.loops[-1].dims, sizes), start=one) < long_from(pattern)


def _is_set(flag: str, _sizes: Any, flags: Mapping[str, Expression]) -> Expression:
    return flags[flag] != 0


def space(pattern: AccessPattern, target: Target) -> Mapping[str, Sequence[Any]]:
    """List the values of every knob that tuning may try, the default's among them."""
    return knobs.space(default_config(pattern, target), pattern, target)


def apply(sch: s_tir.Schedule, pattern: AccessPattern, target: Target, config: Config) -> None:
    """Schedule the definition, as this module's docstring says."""
    block = notes.block_to_schedule(sch, pattern)
    if block is not None:
        apply_to(sch, block, pattern, target, config)


def apply_to(
    sch: s_tir.Schedule, block: Any, pattern: AccessPattern, target: Target, config: Config
) -> None:
    """Schedule a block that is the whole Select, as `apply` does; it has at least one element."""
    loops = _merged_loops(sch, block, pattern)
    leaf_loops = 2 if config.rows else 1
    outer, leaf = loops[:-leaf_loops], loops[-leaf_loops]
    if _is_cut(pattern, config):
        piece, leaf = sch.split(leaf, [None, config.piece])
        outer = [*outer, piece]
    elif len(outer) > 1:
        known = (loop.extent or 0 for loop in pattern.loops[: len(outer) - 1])
        if math.prod(known) >= ENOUGH_TASKS:
            outer = outer[:-1]  # dividing by its extent would take as long as a short leaf
    if outer:
        task = sch.fuse(*outer[:FUSED_LOOPS]) if len(outer) > 1 else outer[0]
        if config.bytes_per_thread:
            sch.parallel(task)
    notes.annotate(sch, leaf, span_of(pattern, config, target).symbol, config)


def dedup_key(
    pattern: AccessPattern, config: Config, cpus: int | None = None
) -> tuple[object, ...]:
    """What a config leads to: leaf, pieces and threads. Configs with one effect are one kernel."""
    stream = config.stream_from
    if stream > 0:
        stream = int(stream <= (pattern.out_bytes or 0))
    span = span_of(pattern, replace(config, stream_from=stream))
    cut = _is_cut(pattern, config)
    tasks = cut or len(pattern.loops) > (2 if config.rows else 1)
    most = threads(pattern, config.bytes_per_thread) if tasks else 0
    leads_to = {
        "vector_bytes": span.symbol,
        "unroll": None,
        "rows": None,
        "piece": config.piece if cut else None,
        "bytes_per_thread": most if most == BY_MACHINE else min(most, cpus or most),
        "stream_from": stream,
        "skip": config.skip if span.skipping else None,
    }
    return knobs.effect(config, leads_to)


def span_of(pattern: AccessPattern, config: Config, target: Target | None = None) -> Span:
    """Choose the span for the leaf of a pattern; without a target, as x86-64 has it."""
    if not pattern.loops:
        config = replace(config, unroll=1, stream_from=0)
    leaf = pattern.loops[-2:] if config.rows else pattern.loops[-1:]
    cond, then, else_ = notes.letters(leaf) if leaf else "fff"
    inner = pattern.loops[-1].extent if config.rows else 1
    end_to_end = config.rows and inner is not None and not share_vectors(pattern)
    skipping = not config.rows and config.skip != 0 and skippable(pattern)
    own = target if skipping else None
    return Span(
        width=pattern.width,
        cond=cond,
        then=then,
        else_=else_,
        inner=0 if end_to_end else inner or 0,
        vector_bytes=config.vector_bytes,
        unroll=1 if config.rows else config.unroll,
        streaming=config.stream_from != 0,
        skipping=skipping,
        end_to_end=end_to_end,
        forwards=config.backwards == 0 and not end_to_end,
        reduces=own is not None and isa.of(own).reduces,
        reloads=own is not None and isa.level_of(own).reloads,
    )


def without_machine_knobs(pattern: AccessPattern, target: Target, config: Config) -> Config:
    """Replace the knobs that fit one model of CPU only by those of the default config."""
    default = default_config(pattern, target)
    return replace(config, **{knob: getattr(default, knob) for knob in OF_MACHINE})


def may_share_record(pattern: AccessPattern, measured: AccessPattern, target: Target) -> bool:
    """Whether the default configs of two patterns are the same."""
    return default_config(pattern, target) == default_config(measured, target)


def _is_cut(pattern: AccessPattern, config: Config) -> bool:
    """Whether the leaf is cut into pieces; it is if the piece is a random variable of any size."""
    if not pattern.loops:
        return False
    rows = pattern.loops[-2 if config.rows else -1].extent
    return rows is None or not isinstance(config.piece, int) or rows > config.piece


def _merged_loops(sch: s_tir.Schedule, block: Any, pattern: AccessPattern) -> list[Any]:
    """Fuse the block's loops to those of the pattern; an axis of extent 1 joins the loop before."""
    loops = sch.get_loops(block)
    if not loops:
        sch.add_unit_loop(block)
        return list(sch.get_loops(block))
    starts = [loop.axes[0] for loop in pattern.loops[1:]]
    bounds = [0, *starts, len(loops)]
    return [
        sch.fuse(*loops[first:end]) if end - first > 1 else loops[first]
        for first, end in pairwise(bounds)
    ]
