"""Small Relax modules with wheres, and their results."""

import numpy as np
import tvm
from tvm import relax, tirx

from te_select.backends.targets import resolve
from te_select.relax import report
from tests.support.machines import LEVEL
from tests.support.operands import mask, random

TARGET = resolve(LEVEL).tvm

SIZES = {"b": 3, "h": 5, "s": 77, "n": 1000, "m": 13}
"""What the names of dims stand for in `operands`."""


def _shapes(shapes, value):
    """Shapes whose names have values."""

    def dim(given):
        if isinstance(given, int):
            return given
        name, factor = given if isinstance(given, tuple) else (given, 1)
        return value(name) * factor if factor > 1 else value(name)

    return [[dim(each) for each in shape] for shape in shapes]


def where_module(cond, then, else_, dtype="float32", build=relax.op.where):
    """A module ``main(cond, then, else_, sizes)`` of one where, or of what ``build`` makes of them.

    A dim is an int, a name, or a name and a factor. The operand ``sizes`` has each name as a dim of
    its own, because TVM has to find the value of a name somewhere.
    """
    names = {}
    shapes = _shapes(
        (cond, then, else_), lambda name: names.setdefault(name, tirx.Var(name, "int64"))
    )
    types = ("bool", dtype, dtype)
    operands = [
        relax.Var(name, relax.TensorType(shape, each))
        for name, shape, each in zip(("c", "x", "y"), shapes, types, strict=True)
    ]
    sizes = relax.Var("sizes", relax.TensorType(tuple(names.values()), "bool"))
    builder = relax.BlockBuilder()
    with builder.function("main", [*operands, sizes]):
        with builder.dataflow():
            out = builder.emit_output(build(*operands))
        builder.emit_func_output(out)
    return builder.get()


def operands(cond, then, else_, dtype="float32", seed=0):
    """NumPy arrays of random bits for `where_module`."""
    names = {}
    shapes = _shapes((cond, then, else_), lambda name: names.setdefault(name, SIZES[name]))
    sides = (random(shape, dtype, seed + k) for k, shape in enumerate(shapes[1:], 1))
    return [mask(shapes[0], seed), *sides, np.zeros(tuple(names.values()), bool)]


def run(mod, target, arrays):
    """Compile a module, and run it: the bytes of its output."""
    vm = relax.VirtualMachine(tvm.compile(mod, target), tvm.cpu())
    return vm["main"](*map(tvm.runtime.tensor, arrays)).numpy().tobytes()


def expected(arrays):
    """The bytes of NumPy's where; elements of one type keep their bits."""
    cond, then, else_ = arrays[:3]
    return np.where(cond, then, else_).astype(then.dtype).tobytes()


def reasons(mod):
    """Why wheres of a module are left, each in words."""
    return [what for _, done, what in report(mod) if done == "left"]
