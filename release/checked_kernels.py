"""Checks what was built on one machine where it is installed, on another: 90 kernels, and where().

``build`` needs te-select. ``check`` needs the wheel of te-select-runtime with its extra ``cli``. It
compares every bit with NumPy.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import sys

import numpy as np

import te_select
from te_select.operator.broadcast import Shape
from te_select.verify.checks import Operands
from te_select.verify.reference import bits
from te_select.verify.verify import verify_kernel

DTYPES = (
    *("bool", "int8", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex128"),
)
SHAPES: list[tuple[Shape, Shape, Shape]] = [
    ((4099,), (4099,), (4099,)),
    ((70001,), (70001,), ()),
    ((7, 1), (7, 300), (7, 300)),
    ((99, 1), (99, 3), (99, 3)),
    ((99, 1), (99, 48), (48,)),
    ((1, 300), (20, 1), (20, 300)),
    ((1, 1, 33, 33), (2, 3, 33, 33), ()),
    ((), (1000,), (1000,)),
    (("n",), ("n",), ("n",)),
    (("r", 1), ("r", "n"), ("r", "n")),
]
SIZE = 257  # of named dims, for where()


def main() -> None:
    """Build the library, or check it and ``te_select.where``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("build", "check"))
    parser.add_argument("library", help="the .so to write or to check")
    parser.add_argument("target", nargs="?", default="native", help="what it is built for")
    asked = parser.parse_args()
    library = asked.library
    if asked.verb == "build":
        pairs = itertools.product(SHAPES, DTYPES)
        workloads = [te_select.Workload(*shapes, dtype) for shapes, dtype in pairs]
        te_select.export(workloads, library, asked.target, tuning_logs=False)
        return
    assert "site-packages" in te_select.__file__, te_select.__file__
    kernels = te_select.load(library)
    assert isinstance(kernels, te_select.Library)
    results = [result for kernel in kernels.values() for result in verify_kernel(kernel)]
    wrong = [f"{result.kernel}: {result.message}" for result in results if not result.passed]
    wrong += check_where()
    print(f"{platform.machine()}: {len(kernels)} kernels in {len(results)} checks, and")
    print(f"{te_select.where.stats().calls} calls of where(); {len(wrong)} are wrong")
    assert "tvm" not in sys.modules
    sys.exit("\n".join(wrong) or 0)


def check_where() -> list[str]:
    """What ``te_select.where`` selects otherwise than NumPy, for every shape and element type."""
    wrong = []
    for shapes, dtype in itertools.product(SHAPES, DTYPES):
        workload = te_select.Workload(*shapes, dtype)
        memory = Operands(workload.bind(dict.fromkeys(workload.dim_names, SIZE)), seed=0)
        memory.random_mask()
        for step in (1, -1, 2):  # backwards and with gaps, too
            operands = [x[..., ::step] if x.ndim else x for x in memory.arrays()[:3]]
            out, expected = te_select.where(*operands), np.where(*operands)
            same = (out.shape, out.dtype) == (expected.shape, expected.dtype)
            if not same or (bits(out) != bits(expected)).any():
                wrong.append(f"where() of {shapes}, {dtype}, [..., ::{step}]")
    if not te_select.where.stats().calls:
        wrong.append("where() has left every call to NumPy")
    return wrong


if __name__ == "__main__":
    main()
