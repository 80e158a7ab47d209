"""Operands that are no plain arrays, but that NumPy makes arrays of: its own, and those of others.

Packages that are not installed are left out. The protocols have small classes of their own here.
"""

import array
import math
import mmap
from importlib import import_module

import numpy as np

SHORT = 300  # elements: lists of more would take long


class Subclass(np.ndarray):
    """An array of a class that has no rules of its own."""


class OfItsOwnRule:
    """NumPy calls the rule, and makes no array of it."""

    def __array_function__(self, function, types, args, kwargs):
        return function, args, kwargs

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("NumPy makes no array of it")


class ByMethod:
    """Has ``__array__``, and counts its calls."""

    def __init__(self, held):
        self.held = held
        self.conversions = 0

    def __array__(self, dtype=None, copy=None):
        self.conversions += 1
        return self.held


class ByInterface:
    """Has ``__array_interface__``."""

    def __init__(self, held):
        self.held = held
        self.__array_interface__ = held.__array_interface__


class ByStruct:
    """Has ``__array_struct__``, by which NumPy 2.4 reads beyond the end of unicode arrays."""

    def __init__(self, held):
        if held.dtype.kind == "U":
            raise TypeError("expected another type")
        self.held = held
        self.__array_struct__ = held.__array_struct__


def _masked(rng, held):
    return np.ma.array(held, mask=rng.random(held.shape) < 0.5, copy=False)


def _bytes(held):
    """The elements as bytes; those of several axes would be an operand of another shape."""
    if held.ndim != 1 or held.dtype.kind not in "bui":
        raise ValueError("it would have another shape")
    found = held.astype(np.uint8).tobytes()
    return found


def _mapped(_, held):
    pages = mmap.mmap(-1, len(held))
    pages[:] = _bytes(held)
    return pages


def _of_package(package, name):
    """A function that makes an object of a class of a package of an array."""

    def made(_, held):
        return getattr(import_module(package), name)(held)

    return made


def _nullable(rng, held):
    series = import_module("pandas").Series(held).convert_dtypes()
    return series.mask(rng.random(held.shape) < rng.choice([0, 0.1]))


def _series_of(dtype):
    return lambda _, held: import_module("pandas").Series(held).astype(dtype)


def _short(held):
    if held.size > SHORT:
        raise ValueError("it would take long")
    return held.tolist()


_OWN = {
    "subclass": lambda _, held: held.view(Subclass),
    "memmap": lambda _, held: held.view(np.memmap),
    "matrix": lambda _, held: held.view(np.matrix),
    "masked": _masked,
    "recarray": lambda _, held: held.view(np.recarray),
    "chararray": lambda _, held: held.view(np.char.chararray),
    "method": lambda _, held: ByMethod(held),
    "interface": lambda _, held: ByInterface(held),
    "struct": lambda _, held: ByStruct(held),
    "list": lambda _, held: _short(held),
    "tuple": lambda _, held: tuple(_short(held)),
    "array.array": lambda _, held: array.array("b", _bytes(held)),
    "memoryview": lambda _, held: memoryview(held),
    "bytearray": lambda _, held: bytearray(_bytes(held)),
    "mmap": _mapped,
    "none": lambda _, held: None,
    "range": lambda _, held: range(len(_bytes(held))),
}
_OF_PACKAGES = {
    "pandas.Series": _of_package("pandas", "Series"),
    "pandas.Index": _of_package("pandas", "Index"),
    "pandas.DataFrame": _of_package("pandas", "DataFrame"),
    "pandas.nullable": _nullable,
    "pandas.category": _series_of("category"),
    "pandas.zoned": _series_of("datetime64[ns, UTC]"),
    "xarray.DataArray": _of_package("xarray", "DataArray"),
    "pyarrow.array": _of_package("pyarrow", "array"),
    "polars.Series": _of_package("polars", "Series"),
}


def _is_installed(kind):
    try:
        import_module(kind.split(".", maxsplit=1)[0])
    except ImportError:
        return False
    return True


KINDS = _OWN | {kind: make for kind, make in _OF_PACKAGES.items() if _is_installed(kind)}


def as_neighbour(rng, operand, kind=None):
    """The operand as an object of a kind, any by default; as it is if it cannot be one."""
    kind = kind or str(rng.choice(list(KINDS)))
    if not isinstance(operand, np.ndarray):
        return operand
    try:
        made = KINDS[kind](rng, operand)
        shape = getattr(made, "shape", operand.shape)
        fits = math.prod(np.broadcast_shapes(shape, operand.shape)) == operand.size
    except Exception:  # whatever a package says of types and shapes that it does not take
        return operand
    return made if fits else operand


def conversions(operands):
    """How often the operands have been made arrays of, those that count it."""
    return [each.conversions for each in operands if isinstance(each, ByMethod)]
