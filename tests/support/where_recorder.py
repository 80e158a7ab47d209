"""The C half of where() with kernels, a pool and memory that write down what is asked of them."""

from ctypes import Structure, byref, c_int32, c_int64, c_void_p
from typing import NamedTuple

import numpy as np

from te_select.operator.stages import SOURCES
from te_select.schedules.cpu.span import FLAGS
from tests.support import c_half
from tests.support.operands import random

_OF_HOST = ("decide", "cond_sampling", "cpu_model", "processors", "profile", "sysfs")
_OF_WHERE = ("pool_of_caller", "where", "where_block", "where_plan", "where_stage")
HALF = (
    *(f"cpu/{name}.c" for name in _OF_HOST),
    *(f"where/{name}.c" for name in _OF_WHERE),
)
NEVER = 1 << 60
# Of a profile by which no call has threads or flags.
_PROFILE = {
    "stream_per_thread": NEVER,
    "stream_per_l3": 0,
    "fill_per_thread": NEVER,
    "fill_per_l3": 0,
    "fill_reads": 50,
    "bytes_per_thread": NEVER,
    "skip": 0,
    "backwards": 0,
}


_KINDS = {"?": -1, "f": -1, "D": -1, "B": 5, "i": 3, "l": 14}  # "l" are places of bits
_RANK = 64
_Axes = c_int64 * _RANK


class Call(Structure):
    """A te_select_where_call of ``where_call.h``."""

    _fields_ = (
        ("ndim", c_int32),
        ("width", c_int32),
        ("shape", _Axes),
        ("strides", _Axes * 4),
        ("data", c_void_p * 4),
    )


def _strides(array, shape):
    """The bytes from one element to the next along the axes of a shape; 0 if it is broadcast."""
    before = len(shape) - array.ndim
    own = zip(array.strides, array.shape, strict=True)
    return [0] * before + [step if extent != 1 else 0 for step, extent in own]


def axes(*values):
    """One number for each axis."""
    return _Axes(*values)


def call_of(cond, x, y, out):
    """The call that selects these arrays."""
    call = Call(out.ndim, out.itemsize, _Axes(*out.shape))
    for number, array in enumerate((cond, x, y, out)):
        call.strides[number][: out.ndim] = _strides(array, out.shape)
        call.data[number] = array.__array_interface__["data"][0]
    return call


class _Note(Structure):
    _fields_ = (
        *((name, c_int32) for name in ("width", "rows", "number", "task")),
        *((name, c_int64) for name in ("flags", "m", "n")),
        ("data", c_int64 * 4),
    )


class Asked(NamedTuple):
    """A call of a kernel.

    Its name is that of the part of rows, or the width and who moves: cond, then, else. ``data`` are
    the addresses of cond, then, else and out.
    """

    kernel: str
    m: int
    n: int
    flags: set[str]
    task: int
    data: tuple[int, ...]


class Staged(NamedTuple):
    """The fields of a te_select_where_plan, and what was asked for."""

    threads: int
    past_cache: int
    by_tiles: int
    block: int
    asked: list[Asked]

    def made(self, kind):
        """How many elements a stage made at a time."""
        return [each.n for each in self.asked if each.kernel == f"stage {kind}"]


def build(make=c_half.built):
    """Compile the library, as ``c_half.built`` does or otherwise."""
    return make("where_recorder.c", HALF, "-include", str(c_half.DRIVERS / "where_recorder.h"))


class Recorder:
    """The library, for a profile and a number of threads.

    Parameters
    ----------
    path
        Of `build`.
    monkeypatch
        Of pytest.
    threads
        The most of a call.
    profile
        Keys of TE_SELECT_PROFILE; by the others no call has threads or flags.
    """

    def __init__(self, path, monkeypatch, threads=4, **profile):
        pairs = (_PROFILE | profile).items()
        monkeypatch.setenv("TE_SELECT_PROFILE", ",".join(f"{key}={value}" for key, value in pairs))
        monkeypatch.setenv("TE_SELECT_NUM_THREADS", str(threads))
        self._library = c_half.copied(path)  # its constructors see the environment
        self["at_hand"] = threads

    def __getitem__(self, name):
        return c_int32.in_dll(self._library, name).value

    def __setitem__(self, name, value):
        c_int32.in_dll(self._library, name).value = value

    def select(self, cond, x, y, out, *, rows=True):
        """Select, with kernels of rows or without; return what that came to."""
        call = call_of(cond, x, y, out)
        return int(self._library.select_recorded(byref(call), int(rows), None, None))

    def staged(self, cond, x, y, out, bits=None):
        """What is decided of a call with inputs that are converted, whose result must be right.

        Sides of bytes become floats, an int32 cond booleans. Cond may be places of bits in `bits`.
        """
        kinds = (c_int32 * 3)(*(_KINDS[each.dtype.char] for each in (cond, x, y)))
        call = call_of(cond, x, y, out)
        truth = cond
        if bits is not None:
            c_void_p.in_dll(self._library, "bits_of_cond").value = bits.ctypes.data
            truth = np.unpackbits(bits, bitorder="little")[cond]
            call.data[0] = int(cond.flat[0])
            call.strides[0][: cond.ndim] = [step // cond.itemsize for step in cond.strides]
            call.strides[0][0] *= int(cond[1] - cond[0])
        plan = (c_int32 * 5)()
        expected = np.where(truth, x, y).astype(out.dtype)
        kernel = self._library.select_recorded(byref(call), 1, kinds, plan)
        number = self._library.select_recorded(byref(call), 1, kinds, None)
        assert out.tobytes() == expected.tobytes()
        assert number == kernel >= 0
        return Staged(*plan[1:], self.notes())

    def asked(self, cond, x, y, out=None, *, rows=True):
        """What kernels are asked for by a call, whose result must be right."""
        operands = [np.asarray(cond), np.asarray(x), np.asarray(y)]
        expected = np.where(*operands)
        if out is None:
            out = np.zeros_like(expected)
        expected = np.broadcast_to(expected, out.shape)
        assert self.select(*operands, out, rows=rows) >= 0
        assert out.tobytes() == expected.tobytes()
        return self.notes()

    def notes(self):
        """What kernels were asked for by the last call, in the order of its tasks."""
        notes = (_Note * self["count_of_notes"]).in_dll(self._library, "notes")
        return sorted(map(_asked, notes), key=lambda asked: asked.task)

    def copy(self, *arguments):
        """Call te_select_copy: two addresses with two strides each; m, n and an element's bytes."""
        self._library.te_select_copy(*map(c_int64, arguments))


def bits(*shape, dtype="f4"):
    """An array of random bits."""
    return random(shape, np.dtype(dtype))


def mask(*shape):
    """A random cond."""
    return np.random.default_rng(1).random(shape) < 0.5


def operands(*shape, dtype="f4"):
    """Compact inputs of a call."""
    return mask(*shape), bits(*shape, dtype=dtype), bits(*shape, dtype=dtype)[::-1].copy()


def kernels(asked):
    """The kernels that were asked for, with m and n, without what repeats."""
    return list(dict.fromkeys((each.kernel, each.m, each.n) for each in asked))


def _asked(note):
    name = f"w{note.width}"
    if note.rows == 2:  # A_STAGE
        name = f"stage {SOURCES[note.number]}"
    elif note.rows:
        name += f"_rows{note.number:02}"
    else:
        name += " " + "".join(c for bit, c in ((4, "c"), (2, "t"), (1, "e")) if note.number & bit)
    flags = {flag for flag, bit in FLAGS.items() if note.flags & bit}
    return Asked(name, note.m, note.n, flags, note.task, tuple(note.data))
