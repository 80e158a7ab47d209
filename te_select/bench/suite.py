"""The fixed suite: named workloads, and why each is there."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


BASELINES = (
    Entry(
        "contiguous-32M",
        Workload((1 << 25,), (1 << 25,), (1 << 25,)),
        "nothing broadcasts and nothing fits a cache: the plain roof",
    ),
    Entry(
        "attention-causal",
        Workload((1, 1, 1024, 1024), (4, 12, 1024, 1024), ()),
        "one causal mask for the scores of every batch and head",
    ),
    Entry(
        "attention-padding",
        Workload((4, 1, 1, 1024), (4, 12, 1024, 1024), ()),
        "padded keys of each sequence, for all heads and queries",
    ),
    Entry(
        "rows-4096",
        Workload((4, 1024, 1), (4, 1024, 1024), (4, 1024, 1024)),
        "whole rows from one side or the other; half of the input need not be read",
    ),
    Entry(
        "inner-3",
        Workload((1 << 20, 1), (1 << 20, 3), (1 << 20, 3)),
        "a mask over points or pixels of three channels",
    ),
    Entry(
        "channels-32",
        Workload((64, 56, 56, 1), (64, 56, 56, 32), (32,)),
        "channel-last features, a learned vector where a pixel is masked",
    ),
    Entry(
        "outer-product",
        Workload((1024, 1, 1024), (1024, 16, 1), (16, 1024)),
        "then and else move along different loops; only cond fills the inner one",
    ),
    Entry(
        "odd-4099x1021",
        Workload((4099, 1021), (4099, 1021), (4099, 1021)),
        "primes: no row is a whole number of vectors",
    ),
    Entry(
        "rows-8",
        Workload((8, 1, 1), (8, 512, 513), (1, 512, 513)),
        "a switch per sample, else shared by the batch",
    ),
)
"""The workloads that were first measured against nine other systems."""


def _contiguous(elements: int, dtype: str = "float32") -> Workload:
    return Workload((elements,), (elements,), (elements,), dtype)


def _inner(extent: int) -> Entry:
    return Entry(
        f"inner-{extent}",
        Workload((1 << 20, 1), (1 << 20, extent), (1 << 20, extent)),
        f"rows of {extent} elements, less than a vector: several rows share one",
    )


DEFAULT = (
    Entry("scalar", Workload((), (), ()), "one element: the cost of a call"),
    Entry("contiguous-1KB", _contiguous(79), "1 KB: the cost of a call and little more"),
    Entry("contiguous-1K", _contiguous(1024), "1024 elements in the first-level cache"),
    Entry("contiguous-64K", _contiguous(1 << 16), "0.9 MB: where a second thread begins to pay"),
    Entry("contiguous-1M", _contiguous(1 << 20), "14 MB: within a server's last-level cache"),
    Entry("contiguous-16M+7", _contiguous((1 << 24) + 7), "an odd size beside the round one"),
    *BASELINES,
    Entry("contiguous-1GB", _contiguous((1 << 30) // 13), "1 GB: beyond every cache and TLB"),
    Entry(
        "contiguous-uint8", _contiguous(1 << 25, "uint8"), "1 byte wide: cond is a quarter of it"
    ),
    Entry("contiguous-float16", _contiguous(1 << 23, "float16"), "2 bytes wide"),
    Entry("contiguous-float64", _contiguous(1 << 22, "float64"), "8 bytes wide"),
    Entry("contiguous-complex128", _contiguous(1 << 21, "complex128"), "16 bytes wide"),
    Entry(
        "attention-causal-bf16",
        Workload((1, 1, 1024, 1024), (4, 12, 1024, 1024), (), "bfloat16"),
        "the causal mask as it is served: half the bytes an element",
    ),
    Entry(
        "attention-batch",
        Workload((4, 1, 512, 512), (4, 12, 512, 512), ()),
        "a mask per sequence, as packed documents need, shared by the heads",
    ),
    Entry(
        "attention-head",
        Workload((12, 512, 512), (4, 12, 512, 512), ()),
        "a mask per head, as sliding windows of several lengths need",
    ),
    Entry(
        "attention-full",
        Workload((4, 12, 512, 512), (4, 12, 512, 512), (), "float16"),
        "dropout of attention scores: a mask of its own for every score",
    ),
    Entry(
        "attention-windows",
        Workload((1, 64, 1, 49, 49), (16, 64, 4, 49, 49), ()),
        "shifted-window attention: rank 5, a mask per window of 7 by 7",
    ),
    Entry(
        "padding-tokens",
        Workload((32, 512, 1), (32, 512, 768), ()),
        "embeddings of padded tokens set to zero: a row at a time",
    ),
    Entry(
        "padding-labels",
        Workload((64, 2048), (64, 2048), (), "int64"),
        "labels of padded tokens set to the index that a loss ignores",
    ),
    Entry(
        "rows-default",
        Workload((4096, 1), (4096, 1024), (1024,)),
        "rows that no expert took get the default row",
    ),
    Entry(
        "channels-63",
        Workload((65537, 1), (65537, 63), (65537, 63)),
        "channel-last with one channel less than a round number",
    ),
    Entry(
        "image-rgb",
        Workload((1080, 1920, 1), (1080, 1920, 3), (1080, 1920, 3), "uint8"),
        "two full-HD images composed by a mask: rows of three bytes",
    ),
    *(_inner(extent) for extent in (2, 4, 5, 6, 7)),
    Entry(
        "outer-2d",
        Workload((4096, 4096), (4096, 1), (1, 4096)),
        "a column against a row: cond is the only matrix that is read",
    ),
    Entry(
        "scalar-sides",
        Workload.onnx_where((1 << 24,), (), ()),
        "a mask made into numbers: one byte in, four out",
    ),
    Entry(
        "scalar-cond",
        Workload((), (1 << 22,), (1 << 22,)),
        "a switch between two tensors: a copy of one",
    ),
    Entry(
        "onnx-widening",
        Workload.onnx_where((8, 1, 256, 256), (1, 8, 1, 256), ()),
        "ONNX Where whose cond widens the output",
    ),
)

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
