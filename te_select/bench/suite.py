"""The fixed suite: named workloads, and why each is there."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from te_select.operator.workload import Workload

if TYPE_CHECKING:
    from te_select.timing.operands import Mask


@dataclass(frozen=True)
class Entry:
    """One workload of a suite.

    Parameters
    ----------
    name
        Its name for ``--only``.
    workload
        The workload; in a suite, of int dims only.
    why
        One line: who uses it, or what it shows.
    ranges, mask, of_where
        For tuning: the sizes of named dims, each a name with the least and the largest size; the
        cond that was seen; and whether it stands for a kernel of `te_select.where`.
    """

    name: str
    workload: Workload
    why: str
    ranges: tuple[tuple[str, int, int], ...] = ()
    mask: Mask | None = None
    of_where: bool = False


# The shapes of cond, then and else; the element type and the rule, if they are not the usual ones;
# and below, why the workload is there.
_BASELINES = """\
contiguous-32M: 33554432 33554432 33554432
    nothing broadcasts and nothing fits a cache: the plain roof
attention-causal: 1,1,1024,1024 4,12,1024,1024 ()
    one causal mask for the scores of every batch and head
attention-padding: 4,1,1,1024 4,12,1024,1024 ()
    padded keys of each sequence, for all heads and queries
rows-4096: 4,1024,1 4,1024,1024 4,1024,1024
    whole rows from one side or the other; half of the input need not be read
inner-3: 1048576,1 1048576,3 1048576,3
    a mask over points or pixels of three channels
channels-32: 64,56,56,1 64,56,56,32 32
    channel-last features, a learned vector where a pixel is masked
outer-product: 1024,1,1024 1024,16,1 16,1024
    then and else move along different loops; only cond fills the inner one
odd-4099x1021: 4099,1021 4099,1021 4099,1021
    primes: no row is a whole number of vectors
rows-8: 8,1,1 8,512,513 1,512,513
    a switch per sample, else shared by the batch
"""
_SMALL = """\
scalar: () () ()
    one element: the cost of a call
contiguous-1KB: 79 79 79
    1 KB: the cost of a call and little more
contiguous-1K: 1024 1024 1024
    1024 elements in the first-level cache
contiguous-64K: 65536 65536 65536
    0.9 MB: where a second thread begins to pay
contiguous-1M: 1048576 1048576 1048576
    14 MB: within a server's last-level cache
contiguous-16M+7: 16777223 16777223 16777223
    an odd size beside the round one
"""
_OTHERS = """\
contiguous-1GB: 82595524 82595524 82595524
    1 GB: beyond every cache and TLB
contiguous-uint8: 33554432 33554432 33554432 uint8
    1 byte wide: cond is a quarter of it
contiguous-float16: 8388608 8388608 8388608 float16
    2 bytes wide
contiguous-float64: 4194304 4194304 4194304 float64
    8 bytes wide
contiguous-complex128: 2097152 2097152 2097152 complex128
    16 bytes wide
attention-causal-bf16: 1,1,1024,1024 4,12,1024,1024 () bfloat16
    the causal mask as it is served: half the bytes an element
attention-batch: 4,1,512,512 4,12,512,512 ()
    a mask per sequence, as packed documents need, shared by the heads
attention-head: 12,512,512 4,12,512,512 ()
    a mask per head, as sliding windows of several lengths need
attention-full: 4,12,512,512 4,12,512,512 () float16
    dropout of attention scores: a mask of its own for every score
attention-windows: 1,64,1,49,49 16,64,4,49,49 ()
    shifted-window attention: rank 5, a mask per window of 7 by 7
padding-tokens: 32,512,1 32,512,768 ()
    embeddings of padded tokens set to zero: a row at a time
padding-labels: 64,2048 64,2048 () int64
    labels of padded tokens set to the index that a loss ignores
rows-default: 4096,1 4096,1024 1024
    rows that no expert took get the default row
channels-63: 65537,1 65537,63 65537,63
    channel-last with one channel less than a round number
image-rgb: 1080,1920,1 1080,1920,3 1080,1920,3 uint8
    two full-HD images composed by a mask: rows of three bytes
inner-2: 1048576,1 1048576,2 1048576,2
    rows of 2 elements, less than a vector: several rows share one
inner-4: 1048576,1 1048576,4 1048576,4
    rows of 4 elements, less than a vector: several rows share one
inner-5: 1048576,1 1048576,5 1048576,5
    rows of 5 elements, less than a vector: several rows share one
inner-6: 1048576,1 1048576,6 1048576,6
    rows of 6 elements, less than a vector: several rows share one
inner-7: 1048576,1 1048576,7 1048576,7
    rows of 7 elements, less than a vector: several rows share one
outer-2d: 4096,4096 4096,1 1,4096
    a column against a row: cond is the only matrix that is read
scalar-sides: 16777216 () () float32 multidirectional
    a mask made into numbers: one byte in, four out
scalar-cond: () 4194304 4194304
    a switch between two tensors: a copy of one
onnx-widening: 8,1,256,256 1,8,1,256 () float32 multidirectional
    ONNX Where whose cond widens the output
"""


def _entries(table: str) -> Iterator[Entry]:
    lines = table.splitlines()
    for row, why in zip(lines[::2], lines[1::2], strict=True):
        name, _, words = row.partition(": ")
        given: list[Any] = words.split()
        given[:3] = ([int(size) for size in re.findall(r"\d+", shape)] for shape in given[:3])
        yield Entry(name, Workload(*given), why.strip())


BASELINES = (*_entries(_BASELINES),)
"""The workloads that were first measured against nine other systems."""
DEFAULT = (*_entries(_SMALL), *BASELINES, *_entries(_OTHERS))
SUITES = {"default": DEFAULT, "baselines": BASELINES}


def choose(entries: Sequence[Entry], only: str) -> list[Entry]:
    """The entries whose names match a glob.

    Parameters
    ----------
    entries
        A suite.
    only
        A glob such as ``attention-*``.

    Returns
    -------
    list of Entry
        In the order of the suite.

    Raises
    ------
    ValueError
        If none matches.
    """
    chosen = [entry for entry in entries if fnmatch.fnmatchcase(entry.name, only)]
    if not chosen:
        names = ", ".join(entry.name for entry in entries)
        raise ValueError(f"matches no workload; expected a glob over {names}")
    return chosen
