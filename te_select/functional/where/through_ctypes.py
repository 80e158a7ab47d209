"""Calls with arrays that DLPack refuses: read-only ones, dates, texts, odd strides."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from te_select.functional.where.kernels import library

_RANK = 64
_Axes = ctypes.c_int64 * _RANK
Array = np.ndarray[Any, Any]


class _Call(ctypes.Structure):
    """A te_select_where_call of ``where.h``."""

    _fields_ = (
        ("ndim", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("shape", _Axes),
        ("strides", _Axes * 4),
        ("data", ctypes.c_void_p * 4),
    )


def select(cond: Array, x: Array, y: Array, out: Array) -> int:
    """Select by the kernels, which must be there.

    Parameters
    ----------
    cond, x, y
        Arrays that broadcast to out; cond boolean, the others with elements as wide as those of
        out.
    out
        Where to write; `overlaps` must not hold.

    Returns
    -------
    int
        What the call came to, see ``where.h``.
    """
    call = _Call(out.ndim, out.itemsize, _Axes(*out.shape))
    for number, array in enumerate((cond, x, y, out)):
        call.strides[number][: out.ndim] = _strides(array, out.shape)
        call.data[number] = array.__array_interface__["data"][0]
    return library.call(ctypes.byref(call))


def overlaps(inputs: Sequence[Array], out: Array) -> bool:
    """Whether out may share memory with an input, but for x and y that lie as out does, or itself.

    Its elements must then be put elsewhere first. As ``te_select_where_overlaps`` of ``where.h``.
    """
    place = _place(out, out.shape)
    for number, array in enumerate(inputs):
        if np.may_share_memory(array, out) and not (number and _place(array, out.shape) == place):
            return True
    inside = out.itemsize  # every axis must step over those inside of it
    axes = zip(map(abs, out.strides), out.shape, strict=True)
    for step, extent in sorted(axis for axis in axes if axis[1] != 1):
        if step < inside:
            return True
        inside += step * (extent - 1)
    return False


def _place(array: Array, shape: tuple[int, ...]) -> tuple[int, list[int]]:
    strides = _strides(array, shape)
    moving = [step if extent != 1 else 0 for step, extent in zip(strides, shape, strict=True)]
    return array.__array_interface__["data"][0], moving


def _strides(array: Array, shape: tuple[int, ...]) -> list[int]:
    """The bytes from one element to the next along the axes of a shape; 0 if it is broadcast."""
    before = len(shape) - array.ndim
    own = zip(array.strides, array.shape, strict=True)
    return [0] * before + [step if extent != 1 else 0 for step, extent in own]
