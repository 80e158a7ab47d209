"""Operands that NumPy's own conversion does not survive, or speaks of; numbers in tvm-ffi calls."""

import struct
import warnings

import numpy as np
from pytest import importorskip, mark

import te_select
from te_select import where
from tests.support.where_calls import difference, outcome


def same(given, within=lambda function: function):
    """Whether a call is NumPy's, within what is around both."""
    found, expected = (outcome(within(each), given) for each in (where, np.where))
    return difference(found, expected) is None


def test_signalling_nan_is_converted_without_a_word():
    size = 100_000
    signalling = np.full(size, 0x7F800001, np.uint32).view("f4")
    ones = np.ones(size, "u4")
    zeros = np.zeros(size, "i1")
    left = where.stats().left
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for given in ((signalling, ones, zeros), (ones > 0, signalling, ones)):
            assert where(*given).tobytes() == np.where(*given).tobytes()
    assert where.stats().left == left


@mark.parametrize("raised", ["invalid", "over", "under"])
def test_conversion_errors_are_raised_only_as_numpy_does(raised):
    signalling = np.array([0x7FA00000], np.uint32).view("f4")
    (number,) = struct.unpack("d", struct.pack("Q", 0x7FF4 << 48))  # a signalling NaN, too
    parts = np.array([0, 0xFFA00000], np.uint32).view("c8")
    cond = np.array([True])
    floats, several = np.ones(2, "f4"), np.ones(3, "f4")
    calls = [
        (signalling, 1, 2),
        (signalling, signalling, np.ones(1)),
        (cond, signalling, np.zeros(1)),
        *((cond, single, np.arange(2)) for single in (signalling[0], parts[0])),
        *((cond, of_type, number) for of_type in (floats, floats.astype("f2"))),
        (cond, parts.reshape(()), np.zeros(1, "c16")),
        (cond, signalling, 1e300 + 0j),
        (floats, several, 1e300 + 0j),
        (floats, floats, 1e300 + 0j),
        (floats, floats, 1e-320 + 0j),
        (floats, floats, 1e300),
    ]

    def raising(function):
        return np.errstate(all="ignore", **{raised: "raise"})(function)

    for given in calls:
        assert same(given, raising), given


def test_subclass_of_a_scalar_may_have_a_rule_of_its_own():
    class Own(np.float64):
        def __array_function__(self, function, types, args, kwargs):
            return "by its own rule"

    for cond in (np.array([True]), np.arange(20_000), Own(1)):
        assert where(cond, Own(1), 2.0) == where(cond, np.ones(3), Own(2)) == "by its own rule"


def odd(name, raised, module):
    """An object with an attribute that raises, of a library that is asked for its bits."""

    def get(self):
        raise raised("not asked for")

    def held(self, dtype=None, copy=None):
        return np.array([True, False, True])

    return type("Odd", (), {name: property(get), "__array__": held, "__module__": module})()


def written(name, *given):
    memory = np.zeros(3)
    getattr(given[0], name)(memory, *given[1:])
    return memory


ASKED = {
    "where": lambda lib, each: lib.where(each, 1, 2),
    "x of where": lambda lib, each: lib.where(True, each, 2),
    "cond alone": lambda lib, each: lib.where(each)[0],
    "where with floats": lambda lib, each: lib.where(each, 1.5, np.float32(2)),
    "cond of select": lambda lib, each: lib.select([each], [1]),
    "conds of select": lambda lib, each: lib.select(each, [1]),
    "choice of select": lambda lib, each: lib.select([np.array([True, False, True])], [each]),
    "choices of select": lambda lib, each: lib.select([np.array([True, False, True])], each),
    "src": lambda lib, each: written("copyto", lib, each),
    "where of copyto": lambda lib, each: written("copyto", lib, 1.0, "same_kind", each),
    "dst": lambda lib, each: lib.copyto(each, 1.0),
    "mask": lambda lib, each: written("putmask", lib, each, 1.0),
    "values": lambda lib, each: written("putmask", lib, np.array([True, False, True]), each),
}
NAMES = ("__class__", "dtype", "array", "__dlpack__", "__jax_array__", "__array_function__")


@mark.parametrize("use", ASKED)
@mark.parametrize("raised", [ValueError, NotImplementedError])
@mark.parametrize("name", NAMES)
def test_attribute_that_raises_counts_as_none(name, raised, use):
    for module in ("own", "pandas", "polars", "pyarrow"):
        given = (odd(name, raised, module),)
        found, expected = (
            outcome(lambda each, lib=lib: np.asarray(ASKED[use](lib, each)), given)
            for lib in (te_select, np)
        )
        assert difference(found, expected) is None, module


def test_index_of_several_levels_is_a_cond_as_in_numpy():
    pandas = importorskip("pandas")
    index = pandas.MultiIndex.from_tuples([(True, 1), (False, 2)])
    assert same((index, 1, 2))
    memory = np.zeros(2)
    te_select.putmask(memory, index, 1.0)
    assert memory.tolist() == [1, 1]


SIDES = ((1.5,), [1.5], "zz", "i4", b"ab", {"a": 1}, np.str_("f8"), np.datetime64(1, "s"))


@mark.parametrize("side", SIDES, ids=repr)
def test_side_that_could_name_a_type_is_a_value(side):
    cond = np.arange(20_000) % 3  # large, and to be converted
    for other in (np.ones(1, "u2"), np.ones(20_000, "u2"), np.float32(2), b"cd"):
        for given in ((cond, side, other), (cond, other, side)):
            assert same(given), given
