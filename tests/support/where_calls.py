"""Random calls of where(), and whether two of them came to the same."""

import os
import warnings

import numpy as np

from te_select.selecting.kernels import library
from tests.support import ROOT

NUMERIC = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
OTHERS = ("M8[s]", "M8[ms]", "m8[s]", "m8[D]", "S3", "S8", "U2", "U3", "U4", "V5", "V16", ">f4")
RARE = ("g", "O", "S20", "U9")
NUMBERS = (
    0, 1, -1, 300, 2**31, 2**63, 2**64, -(2**63), 0.0, -0.0, 1.5, 1e300, 1e-42, 7e4, float("inf"),
    float("nan"), 1j, complex(1e300, 0), True, False,
)  # fmt: skip


def random_dtype(rng):
    kind = rng.random()
    names = NUMERIC if kind < 0.8 else OTHERS if kind < 0.97 else RARE
    return np.dtype(str(rng.choice(names)))


def filled(rng, shape, dtype):
    """A compact array of random bits, or of values where bits would not do."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.kind == "b":
        return (rng.random(count) < rng.choice([0.02, 0.5, 0.98])).reshape(shape)
    if dtype.kind == "O":
        return np.array([int(v) for v in rng.integers(-5, 5, count)] or [], dtype).reshape(shape)
    if dtype.char in "gG" or dtype.itemsize > 16:
        return rng.integers(-5, 5, count).astype(dtype).reshape(shape)
    if dtype.kind == "U":
        return (
            rng.integers(97, 123, count * dtype.itemsize // 4, np.uint32)
            .view(dtype)[:count]
            .reshape(shape)
        )
    data = rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype)
    if dtype.kind in "fc":  # converting a signalling NaN raises a flag, whose order is NumPy's own
        data = np.where(np.isnan(data), dtype.type(np.nan), data).astype(dtype)
    return data.reshape(shape)


def strided(rng, shape, dtype):
    """An array whose axes lie in some order in memory, with steps and gaps."""
    order = rng.permutation(len(shape)) if rng.random() < 0.5 else np.arange(len(shape))
    plain = rng.random() < 0.5
    steps = [1 if plain else int(rng.choice([1, 1, 2, -1, 3])) for _ in shape]
    gaps = [0 if plain else int(rng.choice([0, 0, 1, 4])) for _ in shape]
    large = [shape[k] * abs(steps[k]) + gaps[k] for k in order]
    array = filled(rng, large, dtype).transpose(np.argsort(order))
    stepping = (..., *(slice(None, None, step) for step in steps))
    cut = (..., *(slice(0, extent) for extent in shape))
    return array[stepping][cut]


def operand(rng, shape, dtype):
    """An operand that broadcasts to a shape."""
    rank = int(rng.integers(0, len(shape) + 1)) if rng.random() < 0.3 else len(shape)
    own = [1 if rng.random() < 0.2 else extent for extent in shape[len(shape) - rank :]]
    array = strided(rng, own, dtype)
    if rng.random() < 0.05:
        array = np.broadcast_to(array, np.broadcast_shapes(array.shape, tuple(shape)))
    if array.ndim == 0 and rng.random() < 0.5:
        return array[()]
    return array


def random_shape(rng, most):
    """A shape of some rank, now and then empty or large."""
    rank = int(rng.choice(7, p=[0.05, 0.25, 0.3, 0.2, 0.1, 0.05, 0.05]))
    large = rng.random() < 0.55
    shape = []
    left = most if large else 200
    for _ in range(rank):
        extent = int(rng.integers(1, max(2, min(left, left if rng.random() < 0.3 else 40) + 1)))
        shape.append(extent)
        left = max(1, left // extent)
    rng.shuffle(shape)
    if rng.random() < 0.02 and rank:
        shape[0] = 0
    if rng.random() < 0.01 and rank:
        shape[-1] += 1  # what broadcast to the former may not to this
    return shape


def random_mask(rng, shape, odd=0.2):
    """A cond that broadcasts to a shape, with a share of odd types."""
    return operand(rng, shape, np.dtype(bool) if rng.random() >= odd else random_dtype(rng))


def random_sides(rng, shape, dtype=None, count=2):
    """Numbers, and arrays that broadcast to a shape, most of them of one type."""
    dtype = random_dtype(rng) if dtype is None else dtype
    sides = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.2:
            sides.append(NUMBERS[int(rng.integers(len(NUMBERS)))])
        else:
            sides.append(operand(rng, shape, dtype if kind < 0.85 else random_dtype(rng)))
    return sides


def random_call(rng, most=60_000):
    """The arguments of a call of where()."""
    shape = random_shape(rng, most)
    dtype = random_dtype(rng)
    cond = random_mask(rng, shape)
    return cond, *random_sides(rng, shape, dtype)


def outcome(function, arguments):
    """What a call comes to: its result or the type of its exception, and its warnings."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            result = function(*arguments)
        except Exception as error:
            result = type(error)
    return result, sorted({(str(each.message), each.category.__name__) for each in caught})


def difference(ours, theirs):
    """In what two outcomes differ, or None."""
    found, warned = ours
    expected, expected_warnings = theirs
    if isinstance(expected, type) or isinstance(found, type):
        return None if found is expected else f"{found!r} instead of {expected!r}"
    facts = [
        (name, getattr(found, name), getattr(expected, name))
        for name in ("dtype", "shape", *(["strides"] if expected.size else []))
    ]
    facts += [("type", type(found), type(expected)), ("warnings", warned, expected_warnings)]
    facts += [("flags", str(found.flags), str(expected.flags))]
    for name, one, other in facts:
        if one != other:
            return f"{name} is {one!r} instead of {other!r}"
    if expected.dtype.hasobject or expected.dtype.char in "gG":  # of whose bytes some are padding
        pairs = zip(found.flat, expected.flat, strict=True)
        return None if all(repr(a) == repr(b) for a, b in pairs) else "elements differ"
    same = np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()
    return None if same else "bits differ"


def exported(name):
    """A function of the kernels that were loaded first, through tvm-ffi."""
    from te_select.runtime.call import image

    assert library._first is not None
    return image.open_again(library._first).get_function(name)


def path_of_python():
    """PYTHONPATH of a process that finds this te_select, and what this process finds."""
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
