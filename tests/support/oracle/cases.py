"""The cases: operands, and what is odd about them."""

import math
from functools import partial
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided

from te_select import Workload
from te_select.operator.dtypes import ELEMENT_TYPES
from tests.support import alike, flat, shapes
from tests.support import operands as random
from tests.support.hand_made import CUDA, READ_ONLY, HandMade
from tests.support.operands import frozen, shifted
from tests.support.oracle.comparison import NAMES, Case

_AROUND = 4096  # elements; more than a row of any case

SAME = alike(3, 4)
HALVES = alike(3, 4, dtype="float16")
OF_WIDTHS = [SAME] + [alike(3, 4, dtype=dtype) for dtype in ("int8", "bfloat16", "complex128")]
BYTES = flat(64, "uint8")
TRUTHS = flat(64, "bool")
SQUARE = Workload(*shapes("4,4 4 4,4"), "int32")
NAMED = Workload(*shapes("n,1 n,m m"), "int16")
LINE = flat("n")
ROW = alike(1, 4)


def bits(shape, dtype, seed=0):
    """A compact array of random bits, with some of others before and behind it."""
    count = math.prod(shape)
    whole = random.random((count + 2 * _AROUND,), dtype, seed)
    return whole[_AROUND : _AROUND + count].reshape(shape)


def arrays(workload, **sizes):
    """Compact operands of random bits; out has bits of its own."""
    bound = workload.bind(sizes) if sizes else workload
    shapes = (bound.cond_shape, bound.then_shape, bound.else_shape, bound.out_shape)
    cond = bits(shapes[0], "uint8", 9)
    cond *= random.mask(shapes[0])
    others = (bits(shape, bound.dtype, k) for k, shape in enumerate(shapes[1:]))
    return dict(zip(NAMES, (cond.view(bool), *others), strict=True))


def _case(
    name,
    workload,
    oddity="",
    operand="",
    change=None,
    together=None,
    **sizes,
):
    """A case in which one operand is changed, or several together."""

    def make():
        given = arrays(workload, **sizes)
        if change:
            given[operand] = change(given[operand])
        if together:
            together(given)
        return given

    return Case(f"{name} {operand}".strip(), workload, make, oddity, operand)


def _selects():
    for dtype in ELEMENT_TYPES:
        yield _case(f"elements of {dtype}", Workload(*shapes("3,1 3,4 ()"), dtype))
    for n in (0, 1, 3, 15, 17, 33, 257, 1023, 4099):
        yield _case(f"{n} elements", LINE, n=n)
    for n, m in ((1, 1), (2, 7), (0, 3), (5, 50), (16, 7), (16, 18), (16, 64)):
        yield _case(f"{n} rows of {m}", NAMED, n=n, m=m)
    yield _case("single values", alike())
    empty = Workload(*shapes("4,0 4,1 ()"), "bfloat16", "multidirectional")
    yield _case("no columns", empty)
    for workload, name in product((*OF_WIDTHS, TRUTHS), ("then", "else_")):
        yield _case(
            f"{workload.dtype} in place", workload, "", name,
            together=lambda given, name=name: given.update(out=given[name]),
        )  # fmt: skip
    for name, offset in product(NAMES[:3], (-64, 64)):
        yield _case(f"out {offset} behind", BYTES, "", name, together=_placed(name, offset))
    yield _case("unit axis of any stride", ROW, "", "then", lambda a: _strided(a, (1, 4), (400, 4)))
    for name in ("then", "else_"):
        again = _restrided(name)
        yield _case("in place with another unit stride,", ROW, "restrided", name, together=again)
    kinds = (BYTES, 1, {}), (BYTES, 8, {}), (LINE, 4, {"n": 99}), (NAMED, 2, {"n": 16, "m": 64})
    for (kind, by, sizes), name in product(kinds, NAMES):
        behind = partial(shifted, by=by)
        yield _case(f"{kind.dtype} {by} behind a vector,", kind, "", name, behind, **sizes)


def _placed(name, offset):
    """Put an operand and out into one memory, so many bytes behind it."""

    def place(given):
        memory = random.random((192,), "uint8", 7)
        for each, start in (("out", 64 + offset), (name, 64)):
            view = memory[start : start + 64].view(given[each].dtype)
            view[...] = given[each]
            given[each] = view

    return place


def _strided(array, shape, strides):
    """The start of a larger array of the same kind, with steps of bytes."""
    whole = random.random((400,), array.dtype.name, 3)
    return as_strided(whole[60:], shape, strides)


_LAYOUTS = {
    "reversed rows": lambda a: a[::-1].copy()[::-1],
    "reversed columns": lambda a: a[:, ::-1].copy()[:, ::-1],
    "Fortran's order": lambda a: a.copy("F"),
    "columns with gaps": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
}


def _layouts():
    for kind, name in product(OF_WIDTHS, NAMES):
        for how, change in _LAYOUTS.items():
            yield _case(f"{kind.dtype} in {how},", kind, "strides", name, change)
        if name != "out":
            yield _case(f"{kind.dtype} in one row,", kind, "strides", name, _repeated)
            yield _case(f"{kind.dtype} that is read-only,", kind, "frozen", name, frozen)
        if name != "cond" and kind.element.width > 1:
            oddity = "misaligned"
            yield _case(f"{kind.dtype} misaligned,", kind, oddity, name, lambda a: shifted(a, 1))
    reverse = _LAYOUTS["reversed rows"]
    yield _case("named sizes in reversed rows,", NAMED, "strides", "then", reverse, n=2, m=7)
    for strides in ((16, 4), (-4, 12)):
        oddity = "strides" if strides[0] < 0 else ""
        change = partial(_strided, shape=(3, 4), strides=strides)
        yield _case(f"steps {strides} of", SAME, oddity, "out", change)
    for dtype, by in (("complex64", 4), ("complex128", 8)):
        kind = alike(3, 4, dtype=dtype)
        oddity = "half an element" if by < 8 else "half a vector"
        for way, odd, ahead in (("aligned", oddity, by), ("misaligned", "misaligned", by // 2)):
            yield _case(f"halves of {dtype} {way}", kind, odd, "out", partial(shifted, by=ahead))


def _repeated(array):
    return as_strided(array, array.shape, (0, array.strides[1]))


def _restrided(name):
    """Out is an operand of `ROW` itself, with another stride of its unit axis."""
    return lambda given: given.update(out=as_strided(given[name], ROW.out_shape, (400, 4)))


def _instead(value):
    return lambda _: value


def _overlaps():
    for name, offset in product(NAMES[:3], (-63, -1, 1, 3, 63)):
        yield _case(f"out {offset} behind", BYTES, "overlap", name, together=_placed(name, offset))
    yield _case("out is", TRUTHS, "overlap", "cond", together=lambda g: g.update(out=g["cond"]))
    yield _case(
        "a row of out is", SQUARE, "overlap", "then", together=lambda g: g.update(then=g["out"][0])
    )
    for strides in ((0, 4), (4, 4), (8, 4), (-4, 8)):
        change = partial(_strided, shape=(3, 4), strides=strides)
        yield _case(f"elements {strides} apart in", SAME, "itself", "out", change)


def _made(**how):
    return lambda array: HandMade(array, **how)


def _refusals():
    for name in NAMES:
        yield _case("fewer rows of", SAME, "shape", name, lambda a: a[:2].copy())
        yield _case("fewer columns of", SAME, "shape", name, lambda a: a[:, :3].copy())
        yield _case("two lanes of", HALVES, "lanes", name, _two_lanes)
        yield _case("on a device", SAME, "device", name, _made(device=CUDA))
        yield _case("text as", SAME, "no tensor", name, lambda _: "x")
    for name in NAMES[:3]:
        yield _case("None as", SAME, "no tensor", name, lambda _: None)
        yield _case("one row as", SAME, "lower rank", name, lambda a: a[0].copy())
    yield _case("bytes as", SAME, "type", "cond", lambda a: a.view(np.uint8))
    yield _case("signed bytes as", SAME, "type", "cond", lambda a: a.view(np.int8))
    for name, dtype in product(NAMES[1:], ("uint32", "float64", "float16")):
        yield _case(f"{dtype} as", SAME, "type", name, partial(np.ones_like, dtype=dtype))
    for name in ("then", "else_", "out"):
        yield _case("another size of", LINE, "size", name, lambda _: np.zeros(5, "f4"), n=4)
    yield _case("no memory of", SAME, "no memory", "then", _made(data=0), _all_false)
    past = _made(data=2**64 - 4)
    yield _case("past the end", SAME, "past the end", "then", past, _all_false)
    yield _case("negative size of", LINE, "negative", "cond", together=_of_shape(-1), n=4)
    yield _case("too many elements of", LINE, "too many", "cond", together=_of_shape(2**57), n=4)
    yield _case("read-only capsule", SAME, "read-only", "out", _made(flags=READ_ONLY))
    yield _case("read-only", SAME, "read-only", "out", frozen)


def _two_lanes(array):
    code = (6, 8, 2) if array.dtype == np.bool_ else (2, 16, 2)
    return HandMade(array, dtype=code)


def _all_false(given):
    given["cond"][...] = False  # then is not read, whatever its address


def _of_shape(extent):
    def change(given):
        for name, array in given.items():
            given[name] = HandMade(array, shape=(extent,), data=None if extent < 0 else 0)

    return change


_TURNED = {
    "compact": lambda a: a,
    "turned": lambda a: np.moveaxis(np.moveaxis(a, -1, 0).copy(), 0, -1),
    "backwards": lambda a: a[::-1, ..., ::-1].copy()[::-1, ..., ::-1],
    "with gaps": lambda a: np.repeat(a, 2, axis=0)[::2],
    "in columns": lambda a: np.repeat(a, 3, axis=-1)[..., ::3],
}
_LOOPS = """\
6,50,3 6,50,3 6,50,3
6,50,1 6,50,3 6,50,3
6,50,3 6,50,1 6,50,3
6,50,3 6,50,3 6,50,1
1,50,1 6,1,3 6,50,3
6,50,1 6,50,3 1,1,1
2,9,1 1,9,300 2,1,300
1,1,1 3,1,40 3,5,1
3,1,4,5,1 1,2,4,1,6 3,2,1,5,6
""".splitlines()


def _walks():
    """Loops of every kind: runs, rows and tiles, with any operand laid out in any way."""
    walks = product(enumerate(map(shapes, _LOOPS)), enumerate(_TURNED.items()), range(3))
    for (k, loops), (j, (how, change)), i in walks:
        dtype = ("u1", "u2", "f4", "f8", "c16")[(k + j + i) % 5]
        odd = NAMES[(k + j + i) % 4]

        def make(loops=loops, dtype=dtype, odd=odd, change=change):
            every = (*loops, np.broadcast_shapes(*loops))
            given = {
                name: bits(shape, np.dtype(dtype if name != "cond" else "?"), number)
                for number, (name, shape) in enumerate(zip(NAMES, every, strict=True))
            }
            return given | {odd: change(given[odd])}

        name = f"{loops[0]}, {loops[1]}, {loops[2]} of {dtype}, {odd} {how}"
        is_first = how == "compact" and i == 0
        kind = Workload(*loops, np.dtype(dtype).name, "multidirectional") if is_first else None
        yield Case(name, kind, make)
    yield Case("backwards over out", None, _backwards_over_out, "overlap")
    for width in (3, 6, 12, 24, 48):
        yield Case(f"elements of {width} bytes", None, _wide(width), "element's width")


_INF = float("inf")
_NUMBERS = {
    "number": (
        ("uint8", 255), ("int8", -128), ("int64", -(2**63)), ("bool", True), ("float64", 1e300),
        ("float64", -0.0), ("float64", float("nan")), ("float32", 3), ("float32", 0.1),
    ),
    "half": (("float16", 0.5), ("float16", 2048)),
    "wide number": (
        ("uint64", 2**64 - 1), ("bfloat16", 0.5), ("bfloat16", 2**64), ("bfloat16", 10**20),
        ("float8_e5m2", 2**15), ("float8_e5m2", _INF), ("complex64", 1 + 2j), ("complex64", 1),
        ("float16", 4097),
    ),
    "large number": (
        ("uint8", -1), ("uint8", 256), ("int8", 128), ("int8", -129), ("uint64", -1),
        ("float16", 1e6), ("float32", 1e300),
    ),
    "foreign number": (("bool", 1), ("uint8", True)),
    "other number": (("bool", 2), ("int8", 1.0)),
    "wild number": (
        ("float32", 10**400), ("float32", 1j), ("float8_e4m3fn", _INF), ("float8_e4m3fn", 10**20),
        ("complex64", complex(_INF, 1e300)), ("int64", 2**63),
    ),
}  # fmt: skip
"""Numbers by what is odd about them. Their types hold the first three kinds, and no others."""


def _numbers():
    for oddity, numbers in _NUMBERS.items():
        for place, (dtype, number) in enumerate(numbers):
            name = NAMES[1 + place % 2]
            shapes = {"then": (9,), "else_": (9,)} | {name: ()}
            kind = Workload((9,), *shapes.values(), dtype)
            yield _case(f"{str(number)[:9]} of {dtype} as", kind, oddity, name, _instead(number))


def _backwards_over_out():
    memory = random.random((128,), np.dtype("u1"), 1)
    sides = {"then": memory[100:36:-1], "else_": memory[64:]}
    return {"cond": random.mask((64,)), **sides, "out": memory[:64]}


def _wide(width):
    return lambda: {
        name: bits((9,), np.dtype("?" if name == "cond" else f"V{width}"), number)
        for number, name in enumerate(NAMES)
    }


CASES = [*_selects(), *_layouts(), *_overlaps(), *_refusals(), *_numbers()]
WALKS = list(_walks())
WORKLOADS = list(dict.fromkeys(case.workload for case in [*CASES, *WALKS] if case.workload))
