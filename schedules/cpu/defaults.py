"""The CPU schedule's choice of a config without measuring, and the measured sizes it rests on."""

from __future__ import annotations

from tvm.target import Target, codegen

from te_select.operator.access import AccessPattern, Loop
from te_select.schedules.cpu.config import Config, rows_may_be_leaf, share_vectors

LINE_BYTES, AVX2_BYTES = 64, 32
BYTES_PER_THREAD = 1 << 18  # two threads were ahead from 400 KB moved on (docs/measurements.md)
PIECE_BYTES = 1 << 16  # no difference was seen from 64 KB to 256 KB; smaller ones share work better
STREAM_FROM_BYTES = 1 << 22  # past two cores' L2; 1.1 times as fast at 4 MB, 1.5 at 128 MB
FILL_FROM_BYTES = 1 << 25  # where reads do not displace what is written: 0.85 times at 32 MB


def default_config(pattern: AccessPattern, target: Target) -> Config:
    """Choose a good config without measuring."""
    registers = register_bytes(target)
    # On AVX2 two registers a vector: 1.03 times as fast, as lines past the cache are stored whole.
    vector_bytes = registers if registers < AVX2_BYTES else LINE_BYTES
    unroll = 8 if registers == AVX2_BYTES else 4
    streams = pattern.out_bytes is None or pattern.out_bytes >= pays_to_stream(pattern)
    rows = rows_may_be_leaf(pattern) and (
        pattern.loops[-1].extent is None or share_vectors(pattern) or streams
    )
    inner = _inner(pattern, rows)
    step = 4 * vector_bytes // pattern.width
    piece = max(1, PIECE_BYTES // (pattern.width * inner * step)) * step
    known = pattern.elements
    parallel = known is None or (known > 0 and pattern.bytes_moved() >= 2 * BYTES_PER_THREAD)
    grain = BYTES_PER_THREAD if parallel else 0
    stream_from = pays_to_stream(pattern) if streams else 0
    # At 13 KB the look at cond costs a tenth; where memory is the limit, nothing.
    skip = parallel and bool(pattern.loops) and skippable(pattern.loops[-1])
    return Config(vector_bytes, unroll, rows, piece, grain, stream_from, skip)


def register_bytes(target: Target) -> int:
    """Bytes of the widest vector register that byte-wise selection can use on the target."""
    features = {str(feature) for feature in codegen.llvm_get_cpu_features(target)}
    if {"avx512bw", "avx512vl"} <= features:
        return 64
    return 32 if "avx2" in features else 16


def pays_to_stream(pattern: AccessPattern) -> int:
    """Bytes of output from which on stores past the cache are expected to pay."""
    loops = pattern.loops
    read = all(loop.cond for loop in loops) + pattern.width * (
        all(loop.then for loop in loops) + all(loop.else_ for loop in loops)
    )
    return STREAM_FROM_BYTES if 2 * read >= pattern.width else FILL_FROM_BYTES


def skippable(leaf: Loop) -> bool:
    """Whether a plain leaf has a side that a block of cond may leave unread."""
    return leaf.cond and (leaf.then or leaf.else_)


def _inner(pattern: AccessPattern, rows: bool) -> int:
    """Elements per row of the leaf."""
    return (pattern.loops[-1].extent or 1) if rows else 1
