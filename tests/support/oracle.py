"""One oracle: what every door into te-select makes of a case, which NumPy tells.

A case has operands, and may have an oddity, such as an element type that is not the workload's. A
door takes an oddity, and selects as NumPy does; or it refuses the call in words of its own, and
writes nothing.
"""

import ctypes
import dataclasses
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from te_select.errors import ArgumentError, DTypeError
from te_select.operator import family
from te_select.operator.dtypes import ELEMENT_TYPES, element_type
from te_select.operator.workload import Workload
from te_select.runtime.artifact.manifest import c_name
from te_select.runtime.call import image, loading
from te_select.runtime.call.cuda.device_array import DeviceArray
from tests.support import operands as random
from tests.support.hand_made import CPU, CUDA, READ_ONLY, HandMade
from tests.support.runtime_standin import build, manifest
from tests.support.where_recorder import call_of

NAMES = ("cond", "then", "else_", "out")
Operands = dict[str, Any]
_AROUND = 4096  # elements; more than a row of any case


@dataclass(frozen=True)
class Case:
    """Operands, and what is odd about them.

    Parameters
    ----------
    name
        For people.
    workload
        Of the kernel; None if the case is for the doors of where() only.
    make
        Makes the operands, each time anew.
    oddity
        What doors may refuse, a key of `Door.refuses`; "" if no door may.
    operand
        Which one is odd.
    """

    name: str
    workload: Workload | None
    make: Callable[[], Operands]
    oddity: str = ""
    operand: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Door:
    """A way to call.

    Parameters
    ----------
    call
        Selects into out, by a loaded library, for a workload and operands.
    refuses
        The exception, and a pattern of its text, by the oddity; ``{}`` is the operand.
    skips
        Oddities that cannot reach this door.
    allocates
        Whether it makes an array if out is None.
    any_shapes
        Whether it takes operands that have no workload.
    """

    call: Callable[[Any, Any, Operands], Any]
    refuses: Mapping[str, tuple[type[Exception], str]] = field(default_factory=dict)
    skips: frozenset[str] = frozenset()
    allocates: bool = False
    any_shapes: bool = False

    def is_for(self, case: Case) -> bool:
        """Whether a case can be put to this door."""
        return case.oddity not in self.skips and (self.any_shapes or case.workload is not None)


def same(case: Case, door: Door, library: Any = None) -> None:
    """Fail unless a door of a library does with a case what the oracle says."""
    given = case.make()
    memory = _memory(given)
    before = _bytes(memory)
    refusal = door.refuses.get(case.oddity)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if refusal:
            wanted = before
            with pytest.raises(refusal[0], match=refusal[1].replace("{}", case.operand)):
                door.call(library, case.workload, given)
        else:
            wanted = _selected(given, memory)
            if door.allocates:
                _same_array(door.call(library, case.workload, given | {"out": None}), _where(given))
            returned = door.call(library, case.workload, given)
            assert returned is None or returned is given["out"]
    assert _bytes(memory) == wanted, f"{case}: other bytes"


def _where(given: Operands) -> Any:
    kind = given["out"].dtype
    sides = (np.asarray(given[name], kind) for name in ("then", "else_"))
    return np.where(given["cond"].view(np.uint8) != 0, *sides)


def _same_array(found: Any, expected: Any) -> None:
    for fact in ("dtype", "shape", "strides"):
        assert getattr(found, fact) == getattr(expected, fact) or not expected.size
    assert found.tobytes() == expected.tobytes()


def _memory(given: Operands) -> list[Any]:
    """The arrays to whose memory operands belong."""
    bases = {}
    for operand in given.values():
        base = operand
        while getattr(base, "base", None) is not None:
            base = base.base
        if isinstance(base, np.ndarray):
            bases[id(base)] = base
    return list(bases.values())


def _bytes(memory: list[Any]) -> list[bytes]:
    return [array.tobytes() for array in memory]


def _selected(given: Operands, memory: list[Any]) -> list[bytes]:
    """The bytes of all memory after a call."""
    before = [array.copy() for array in memory]
    given["out"][...] = _where(given)
    after = _bytes(memory)
    for array, kept in zip(memory, before, strict=True):
        array[...] = kept
    return after


# ---- the doors ----------------------------------------------------------------------------------

_OF_TENSORS = frozenset(
    {"shape", "size", "lower rank", "type", "lanes", "strides", "itself", "device", "read-only"}
    | {"no tensor", "number", "large number", "negative", "too many"}
)
"""Oddities that only what describes a tensor can have."""


_NOT_OF_NUMPY = {name for name, element in ELEMENT_TYPES.items() if not element.in_numpy}


def _by_packed_function(packed: Callable[..., Any], given: Operands) -> None:
    packed(*(_tensor(given[name]) for name in NAMES))


def _tensor(operand: Any) -> Any:
    """What tvm-ffi takes; NumPy cannot hand over bfloat16 and the like."""
    if isinstance(operand, np.ndarray) and operand.dtype.name in _NOT_OF_NUMPY:
        operand = _handed(operand, CPU)
    return tvm_ffi.from_dlpack(operand) if isinstance(operand, HandMade) else operand


def _handed(array: Any, device: int) -> HandMade:
    element = element_type(array.dtype)
    steps = tuple(step // array.itemsize for step in array.strides)
    code = (element.code, element.bits, 1)
    flags = None if array.flags.writeable else READ_ONLY
    return HandMade(array, strides=steps, device=device, dtype=code, flags=flags)


def call_plain(
    opened: ctypes.CDLL,
    workload: Workload,
    *operands: Any,
    sizes: Iterable[int] = (),
    more: Iterable[Any] = (),
) -> tuple[int, str]:
    """Call the plain C function of a kernel; its status, and the last error without its name."""
    opened.te_select_error.restype = ctypes.c_char_p
    pointers = (ctypes.c_void_p(_address(operand)) for operand in operands)
    status = opened[c_name(workload)](*pointers, *map(ctypes.c_int64, sizes), *more)
    return status, opened.te_select_error().decode().removeprefix(f"{workload.name}: ")


def _address(operand: Any) -> Any:
    if isinstance(operand, np.ndarray):
        return operand.ctypes.data
    if isinstance(operand, HandMade):
        return operand.tensor.data
    return operand.memory.address if isinstance(operand, DeviceArray) else operand


def _by_plain_function(library: Any, workload: Workload, given: Operands, *more: Any) -> None:
    found = dict(_sizes(workload, given)) if workload.dim_names else {}
    sizes = [found[name] for name in workload.dim_names]
    operands = (given[name] for name in NAMES)
    status, message = call_plain(code(library), workload, *operands, sizes=sizes, more=more)
    if status:
        raise {1: ValueError, 2: RuntimeError}[status](message)


def _sizes(workload: Workload, given: Operands) -> Iterator[tuple[str, int]]:
    shapes = (workload.cond_shape, workload.then_shape, workload.else_shape)
    for shape, name in zip(shapes, NAMES, strict=False):
        for dim, extent in zip(shape, given[name].shape, strict=True):
            if isinstance(dim, str):
                yield dim, extent


def code(library: Any) -> ctypes.CDLL:
    """A loaded library as ctypes has opened it."""
    return next(iter(library.values()))._code


def function(library: Any, name: str) -> Callable[..., Any]:
    """An exported function of a loaded library."""
    return image.open_again(code(library)).get_function(name)


def _by_where_in_c(library: Any, given: Operands, pool: Any = None) -> None:
    filled = call_of(*(given[name] for name in NAMES))
    result = code(library).te_select_where_call_on(ctypes.byref(filled), pool, None, 3)
    if result < 0:
        raise ValueError(f"result {result}")


_PIECE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, _PIECE, ctypes.c_size_t, ctypes.c_void_p)
def _one_by_one(_pool: Any, piece: Any, count: int, data: Any) -> None:
    """The parallel-for of a pool."""
    for i in range(count):
        piece(data, i)


KERNEL = Door(
    lambda library, workload, given: library[workload.name](**given),
    {
        "shape": (ArgumentError, r"{} has shape \[.*\]; expected \[3,4\]"),
        "size": (ArgumentError, r"{} has shape \[5\]; expected \[n\] with n = 4"),
        "lower rank": (ArgumentError, "{} has shape"),
        "type": (DTypeError, "{} has element type .*expected (float32|bool: pass cond != 0)"),
        "lanes": (DTypeError, "{} has element type .*DLPack"),
        "itself": (ArgumentError, "its elements share memory"),
        "device": (ArgumentError, "{} is on device 0 of CUDA; expected memory of the CPU"),
        "read-only": (ArgumentError, "{} is a .* that cannot be written"),
        "no tensor": (ArgumentError, "{} is (None|a str)"),
        "no memory": (ArgumentError, "{} has no memory"),
        "past the end": (ArgumentError, "lead out of the address space"),
        "negative": (ArgumentError, "{} is .* expected no negative size"),
        "too many": (ArgumentError, "{} (has|is)"),
    },
    allocates=True,
)
"""A kernel, called from Python."""
PACKED = Door(
    lambda library, workload, given: _by_packed_function(library[workload.name].function, given),
    {
        "shape": (ValueError, r"{} has shape \[.*\]; expected \[3,4\]"),
        "size": (ValueError, r"{} has shape \[5\]; expected \[n\] with n = 4 as in an earlier"),
        "lower rank": (ValueError, "{} has shape"),
        "type": (TypeError, "{} has DLPack type code"),
        "lanes": (TypeError, "{} has DLPack type code .* 2 lanes; expected"),
        "strides": (ValueError, "{} has strides"),
        "overlap": (ValueError, "out overlaps {}; expected memory of its own"),
        "itself": (ValueError, "out has strides"),
        "device": (ValueError, r"{} is on DLPack device \(2,0\); expected memory of the CPU"),
        "no tensor": (TypeError, "{} is not a tensor"),
        "no memory": (ValueError, "{} has a null data pointer; expected 48 bytes"),
        "past the end": (ValueError, "{} has byte_offset 0, which leads out"),
        "negative": (ValueError, "{} has shape"),
        "too many": (ValueError, "{} has too many elements"),
    },
    frozenset({"read-only", "frozen"}),
)
"""The exported function of a kernel, called by tvm-ffi."""
PLAIN = Door(
    _by_plain_function,
    {
        "overlap": (ValueError, "out overlaps {}; expected memory of its own"),
        "misaligned": (ValueError, "{} begins at .*; expected an address divisible by"),
        "no memory": (ValueError, "{} has a null data pointer; expected 48 bytes"),
        "past the end": (ValueError, "{} has byte_offset 0, which leads out"),
    },
    _OF_TENSORS,
)
"""The plain C function of a kernel."""
_OVERLAP = (ValueError, "out overlaps an input")
WHERE_PACKED = Door(
    lambda library, _, given: _by_packed_function(function(library, family.FUNCTION), given),
    {
        "shape": (ValueError, "does not broadcast to out|is larger than what the inputs"),
        "size": (ValueError, "does not broadcast to out"),
        "type": (TypeError, "is not of out.s type|is not boolean"),
        "lanes": (TypeError, "is not of out.s type|is not boolean"),
        "overlap": _OVERLAP,
        "itself": _OVERLAP,
        "device": (ValueError, "is not in memory of the CPU"),
        "no tensor": (TypeError, "is no tensor, and no number|is not a tensor"),
        "large number": (TypeError, "{} is no tensor, and no number that out's type holds"),
        "no memory": (ValueError, "has no memory"),
        "negative": (ValueError, "has a negative dim"),
        "too many": (ValueError, "has more elements than any memory"),
    },
    frozenset({"past the end", "read-only", "frozen", "element's width"}),
    any_shapes=True,
)
"""The exported function of the family, for operands of any shapes, called by tvm-ffi."""
WHERE_IN_C = Door(
    lambda library, _, given: _by_where_in_c(library, given),
    dict.fromkeys(("overlap", "itself"), (ValueError, "result -4")),
    (_OF_TENSORS | {"no memory", "past the end"}) - {"strides", "itself"},
    any_shapes=True,
)
"""The same for C."""
WHERE_ON_POOL = dataclasses.replace(
    WHERE_IN_C, call=lambda library, _, given: _by_where_in_c(library, given, _one_by_one)
)
"""The same on the threads of a caller."""
DOORS = {
    "kernel": KERNEL,
    "packed function": PACKED,
    "plain function": PLAIN,
    "where by tvm-ffi": WHERE_PACKED,
    "where in C": WHERE_IN_C,
    "where on a pool": WHERE_ON_POOL,
}


def _on_device(given: Operands) -> Operands:
    """The operands as memory of a CUDA device; what lies on one already lies in that of the CPU."""
    return {name: _moved(operand) for name, operand in given.items()}


def _moved(operand: Any) -> Any:
    if isinstance(operand, np.ndarray):
        return _handed(operand, CUDA)
    if isinstance(operand, HandMade):
        operand.device = operand.tensor.device_type = CPU if operand.device == CUDA else CUDA
    return operand


def _by_cuda_kernel(library: Any, workload: Workload, given: Operands) -> None:
    library[workload.name](**_on_device(given))


_OTHERS_ON_CUDA = {
    "strides": (ArgumentError, "{} has strides .*(C-contiguous|compact)"),
    "overlap": (ArgumentError, "out .* overlaps an input in part"),
    "half an element": (ArgumentError, "{} begins at .*divisible by 8"),
    "device": (ArgumentError, "{} is in memory of the CPU; expected"),
    "misaligned": (ArgumentError, "{} begins at .*divisible by"),
}
CUDA_KERNEL = Door(_by_cuda_kernel, KERNEL.refuses | _OTHERS_ON_CUDA)
"""A kernel for CUDA, called from Python."""
_ALIGNED = (ValueError, "{} begins at .*; expected an address divisible by")
CUDA_PACKED = Door(
    lambda library, workload, given: _by_packed_function(
        library[workload.name].function, _on_device(given)
    ),
    PACKED.refuses
    | {"device": (ValueError, r"{} is on DLPack device \(1,0\); expected memory of a CUDA device")}
    | dict.fromkeys(("misaligned", "half an element"), _ALIGNED),
    PACKED.skips,
)
"""Its exported function, called by tvm-ffi."""
CUDA_PLAIN = Door(
    lambda library, workload, given: _by_plain_function(
        library, workload, given, ctypes.c_void_p()
    ),
    PLAIN.refuses
    | {"half an element": _ALIGNED, "past the end": (ValueError, "{} is on DLPack device")},
    PLAIN.skips,
)
"""Its plain C function."""
DOORS_OF_CUDA = {
    "CUDA kernel": CUDA_KERNEL,
    "CUDA packed function": CUDA_PACKED,
    "CUDA plain function": CUDA_PLAIN,
}


def library(folder: Path, **how: Any) -> Any:
    """A library of a CPU with all workloads of the cases and all of where(), in plain C."""
    places = family.places(family.parts())
    workloads, path = [*WORKLOADS, *places], folder / "oracle.so"
    build(workloads, path, described=manifest(workloads, plain=True), places=places, **how)
    return loading.load(path)


# ---- the cases ----------------------------------------------------------------------------------

SAME = Workload((3, 4), (3, 4), (3, 4))
HALVES = Workload((3, 4), (3, 4), (3, 4), "float16")
OF_WIDTHS = [SAME] + [
    Workload((3, 4), (3, 4), (3, 4), dtype) for dtype in ("int8", "bfloat16", "complex128")
]
BYTES = Workload((64,), (64,), (64,), "uint8")
TRUTHS = Workload((64,), (64,), (64,), "bool")
SQUARE = Workload((4, 4), (4,), (4, 4), "int32")
NAMED = Workload(("n", 1), ("n", "m"), ("m",), "int16")
LINE = Workload(("n",), ("n",), ("n",))
ROW = Workload((1, 4), (1, 4), (1, 4))


def bits(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """A compact array of random bits, with some of others before and behind it."""
    count = math.prod(shape)
    whole = random.random((count + 2 * _AROUND,), dtype, seed)
    return whole[_AROUND : _AROUND + count].reshape(shape)


def arrays(workload: Workload, **sizes: int) -> Operands:
    """Compact operands of random bits; out has bits of its own."""
    bound = workload.bind(sizes) if sizes else workload
    shapes = (bound.cond_shape, bound.then_shape, bound.else_shape, bound.out_shape)
    cond = bits(shapes[0], "uint8", 9)
    cond *= random.mask(shapes[0])
    others = (bits(shape, bound.dtype, k) for k, shape in enumerate(shapes[1:]))
    return dict(zip(NAMES, (cond.view(bool), *others), strict=True))


def _case(
    name: str,
    workload: Workload,
    oddity: str = "",
    operand: str = "",
    change: Callable[[Any], Any] | None = None,
    together: Callable[[Operands], Any] | None = None,
    **sizes: int,
) -> Case:
    """A case in which one operand is changed, or several together."""

    def make() -> Operands:
        given = arrays(workload, **sizes)
        if change:
            given[operand] = change(given[operand])
        if together:
            together(given)
        return given

    return Case(f"{name} {operand}".strip(), workload, make, oddity, operand)


def _selects() -> Iterator[Case]:
    for dtype in ELEMENT_TYPES:
        yield _case(f"elements of {dtype}", Workload((3, 1), (3, 4), (), dtype))
    for n, m in ((1, 1), (2, 7), (0, 3), (5, 50)):
        yield _case(f"{n} rows of {m}", NAMED, n=n, m=m)
    yield _case("single values", Workload((), (), ()))
    for workload, name in itertools.product((*OF_WIDTHS, TRUTHS), ("then", "else_")):
        yield _case(
            f"{workload.dtype} in place", workload, "", name,
            together=lambda given, name=name: given.update(out=given[name]),
        )  # fmt: skip
    for name, offset in itertools.product(NAMES[:3], (-64, 64)):
        yield _case(f"out {offset} behind", BYTES, "", name, together=_placed(name, offset))
    unit = "unit axis of any stride"
    yield _case(unit, ROW, "", "then", lambda a: _strided(a, (1, 4), (400, 4)))


def _placed(name: str, offset: int) -> Callable[[Operands], None]:
    """Put an operand and out into one memory, so many bytes behind it."""

    def place(given: Operands) -> None:
        memory = random.random((192,), "uint8", 7)
        for each, start in (("out", 64 + offset), (name, 64)):
            view = memory[start : start + 64].view(given[each].dtype)
            view[...] = given[each]
            given[each] = view

    return place


def _strided(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """The start of a larger array of the same kind, with steps of bytes."""
    whole = random.random((400,), array.dtype.name, 3)
    return np.lib.stride_tricks.as_strided(whole[60:], shape, strides)


_LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "reversed rows": lambda a: a[::-1].copy()[::-1],
    "reversed columns": lambda a: a[:, ::-1].copy()[:, ::-1],
    "Fortran's order": lambda a: a.copy("F"),
    "columns with gaps": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
}


def _layouts() -> Iterator[Case]:
    for kind, name in itertools.product(OF_WIDTHS, NAMES):
        for how, change in _LAYOUTS.items():
            yield _case(f"{kind.dtype} in {how},", kind, "strides", name, change)
        if name != "out":
            yield _case(f"{kind.dtype} in one row,", kind, "strides", name, _repeated)
            yield _case(f"{kind.dtype} that is read-only,", kind, "frozen", name, _frozen)
        if name != "cond" and kind.element.width > 1:
            oddity = "misaligned"
            yield _case(f"{kind.dtype} misaligned,", kind, oddity, name, lambda a: _shifted(a, 1))
    reverse = _LAYOUTS["reversed rows"]
    yield _case("named sizes in reversed rows,", NAMED, "strides", "then", reverse, n=2, m=7)
    for strides in ((16, 4), (-4, 12)):
        oddity = "strides" if strides[0] < 0 else ""
        change = lambda a, strides=strides: _strided(a, (3, 4), strides)  # noqa: E731
        yield _case(f"steps {strides} of", SAME, oddity, "out", change)
    for dtype, by in (("complex64", 4), ("complex128", 8)):
        kind = Workload((3, 4), (3, 4), (3, 4), dtype)
        oddity = "half an element" if by < 8 else ""
        change = lambda a, by=by: _shifted(a, by)  # noqa: E731
        yield _case(f"halves of {dtype} aligned", kind, oddity, "out", change)
        shifted = lambda a, by=by: _shifted(a, by // 2)  # noqa: E731
        yield _case(f"halves of {dtype} misaligned", kind, "misaligned", "out", shifted)


def _repeated(array: Any) -> Any:
    return np.lib.stride_tricks.as_strided(array, array.shape, (0, array.strides[1]))


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _shifted(array: Any, by: int) -> Any:
    """A copy so many bytes behind an address that divides by 64."""
    memory = np.zeros(array.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + by
    copied = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def _overlaps() -> Iterator[Case]:
    for name, offset in itertools.product(NAMES[:3], (-63, -1, 1, 3, 63)):
        yield _case(f"out {offset} behind", BYTES, "overlap", name, together=_placed(name, offset))
    yield _case("out is", TRUTHS, "overlap", "cond", together=lambda g: g.update(out=g["cond"]))
    yield _case(
        "a row of out is", SQUARE, "overlap", "then", together=lambda g: g.update(then=g["out"][0])
    )
    for strides in ((0, 4), (4, 4), (8, 4), (-4, 8)):
        change = lambda a, strides=strides: _strided(a, (3, 4), strides)  # noqa: E731
        yield _case(f"elements {strides} apart in", SAME, "itself", "out", change)


def _made(**how: Any) -> Callable[[Any], Any]:
    return lambda array: HandMade(array, **how)


def _refusals() -> Iterator[Case]:
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
    for name, dtype in itertools.product(NAMES[1:], ("uint32", "float64", "float16")):
        change = lambda a, dtype=dtype: np.ones((3, 4), dtype)  # noqa: E731
        yield _case(f"{dtype} as", SAME, "type", name, change)
    for name in ("then", "else_", "out"):
        yield _case("another size of", LINE, "size", name, lambda _: np.zeros(5, "f4"), n=4)
    yield _case("no memory of", SAME, "no memory", "then", _made(data=0), _all_false)
    past = _made(data=2**64 - 4)
    yield _case("past the end", SAME, "past the end", "then", past, _all_false)
    yield _case("negative size of", LINE, "negative", "cond", together=_of_shape(-1), n=4)
    yield _case("too many elements of", LINE, "too many", "cond", together=_of_shape(2**57), n=4)
    yield _case("read-only capsule", SAME, "read-only", "out", _made(flags=READ_ONLY))
    yield _case("read-only", SAME, "read-only", "out", _frozen)


def _two_lanes(array: Any) -> HandMade:
    code = (6, 8, 2) if array.dtype == np.bool_ else (2, 16, 2)
    return HandMade(array, dtype=code)


def _all_false(given: Operands) -> None:
    given["cond"][...] = False  # then is not read, whatever its address


def _of_shape(extent: int) -> Callable[[Operands], None]:
    def change(given: Operands) -> None:
        for name, array in given.items():
            given[name] = HandMade(array, shape=(extent,), data=None if extent < 0 else 0)

    return change


_TURNED: dict[str, Callable[[Any], Any]] = {
    "compact": lambda a: a,
    "turned": lambda a: np.moveaxis(np.moveaxis(a, -1, 0).copy(), 0, -1),
    "backwards": lambda a: a[::-1, ..., ::-1].copy()[::-1, ..., ::-1],
    "with gaps": lambda a: np.repeat(a, 2, axis=0)[::2],
    "in columns": lambda a: np.repeat(a, 3, axis=-1)[..., ::3],
}
_LOOPS = (
    ((6, 50, 3), (6, 50, 3), (6, 50, 3)),
    ((6, 50, 1), (6, 50, 3), (6, 50, 3)),
    ((6, 50, 3), (6, 50, 1), (6, 50, 3)),
    ((6, 50, 3), (6, 50, 3), (6, 50, 1)),
    ((1, 50, 1), (6, 1, 3), (6, 50, 3)),
    ((6, 50, 1), (6, 50, 3), (1, 1, 1)),
    ((6, 1, 3), (1, 50, 3), (6, 50, 1)),
    ((2, 9, 1), (1, 9, 300), (2, 1, 300)),
    ((1, 1, 1), (3, 1, 40), (3, 5, 1)),
    ((2, 1, 600), (2, 3, 600), (1, 1, 1)),
    ((3, 1, 4, 5, 1), (1, 2, 4, 1, 6), (3, 2, 1, 5, 6)),
)


def _walks() -> Iterator[Case]:
    """Loops of every kind: runs, rows and tiles, with any operand laid out in any way."""
    every = itertools.product(enumerate(_LOOPS), enumerate(_TURNED.items()), range(3))
    for (k, loops), (j, (how, change)), i in every:
        dtype, odd = ("u1", "u2", "f4", "f8", "c16")[(k + j + i) % 5], NAMES[(k + j + i) % 4]

        def make(
            loops: Any = loops, dtype: str = dtype, odd: str = odd, change: Any = change
        ) -> Operands:
            shapes = (*loops, np.broadcast_shapes(*loops))
            given = {
                name: bits(shape, np.dtype(dtype if name != "cond" else "?"), number)
                for number, (name, shape) in enumerate(zip(NAMES, shapes, strict=True))
            }
            return given | {odd: change(given[odd])}

        yield Case(f"{loops[0]}, {loops[1]}, {loops[2]} of {dtype}, {odd} {how}", None, make)
    held = (("u1", 255), ("i1", -128), ("i8", -(2**63)), ("?", True), ("f8", 1e300), ("f4", 0.1))
    for dtype, number in (*held, ("f8", -0.0), ("f4", 3)):
        yield Case(f"{number} as {dtype}", None, _with_number(dtype, number), "number", "x")
    beyond = (("u1", -1), ("u1", 256), ("i1", 128), ("?", 2), ("c8", 1), ("i4", 1.0), ("f2", 0.5))
    for dtype, number in beyond:
        yield Case(f"{number} as {dtype}", None, _with_number(dtype, number), "large number", "x")
    yield Case("backwards over out", None, _backwards_over_out, "overlap")
    for width in (3, 6, 12, 24, 48):
        yield Case(f"elements of {width} bytes", None, _wide(width), "element's width")


def _with_number(dtype: str, number: Any) -> Callable[[], Operands]:
    return lambda: {
        name: number if name == "then" else bits((9,), np.dtype(kind), 1)
        for name, kind in zip(NAMES, ("?", dtype, dtype, dtype), strict=True)
    }


def _backwards_over_out() -> Operands:
    memory = random.random((128,), np.dtype("u1"), 1)
    sides = {"then": memory[100:36:-1], "else_": memory[64:]}
    return {"cond": random.mask((64,)), **sides, "out": memory[:64]}


def _wide(width: int) -> Callable[[], Operands]:
    return lambda: {
        name: bits((9,), np.dtype("?" if name == "cond" else f"V{width}"), number)
        for number, name in enumerate(NAMES)
    }


CASES = [*_selects(), *_layouts(), *_overlaps(), *_refusals()]
WALKS = list(_walks())
WORKLOADS = list(dict.fromkeys(case.workload for case in CASES if case.workload))


def pairs(doors: Mapping[str, Door], cases: Iterable[Case]) -> list[Any]:
    """Parameters of a test: a door and a case that can be put to it."""
    return [
        pytest.param(door, case, id=f"{name}: {case}")
        for case in cases
        for name, door in doors.items()
        if door.is_for(case)
    ]
