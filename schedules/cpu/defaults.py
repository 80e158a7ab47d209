"""The CPU schedule's choice of a config without measuring, and the sizes that it rests on.

The sizes were measured on Emerald Rapids and on Zen 4 (docs/measurements.md).
"""

from tvm.target import Target

from te_select.operator.access import AccessPattern
from te_select.schedules.cpu import isa
from te_select.schedules.cpu.config import (
    BY_MACHINE,
    Config,
    may_stream,
    rows_may_be_leaf,
    share_vectors,
    skippable,
)

LEAST_PARALLEL_BYTES = 1 << 18  # moved by a call; with fewer, a second thread never won
PIECE_BYTES = 1 << 16  # of output; 64 KB to 256 KB were equally fast, and small pieces share better


def default_config(pattern: AccessPattern, target: Target) -> Config:
    """Choose a good config without measuring.

    Only what changes the code of a kernel is decided here. What depends on the machine, or on the
    sizes of a call, is decided when the kernel is called.
    """
    own = isa.of(target)
    level = isa.level_of(target)
    vector_bytes, unroll = own.vectors(level, pattern.width)
    streams = own.streams and may_stream(pattern)
    rows = rows_may_be_leaf(pattern) and (
        pattern.loops[-1].extent is None or share_vectors(pattern, level.short_row_bytes) or streams
    )
    inner = (pattern.loops[-1].extent or 1) if rows else 1  # elements per row of the leaf
    step = 4 * vector_bytes // pattern.width
    piece = max(1, PIECE_BYTES // (pattern.width * inner * step)) * step
    known = pattern.elements
    parallel = known is None or (known > 0 and pattern.bytes_moved() >= LEAST_PARALLEL_BYTES)
    return Config(
        vector_bytes=vector_bytes,
        unroll=unroll,
        rows=rows,
        piece=piece,
        bytes_per_thread=BY_MACHINE if parallel else 0,
        stream_from=BY_MACHINE if streams else 0,
        # A call that moves 13 KB takes a tenth longer if it looks at cond first.
        skip=BY_MACHINE if parallel and skippable(pattern) else 0,
        backwards=BY_MACHINE if own.walks_backwards else 0,
    )
