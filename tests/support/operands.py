"""Operands of random bits, and what NumPy selects from them."""

import mmap

import numpy as np

from te_select import Workload
from te_select.operator.dtypes import numpy_dtype

SHAPE = (3, 5)


def bits_of(array):
    """The bytes of a tensor of any library."""
    if hasattr(array, "untyped_storage"):
        import torch

        array = array.detach().contiguous().resolve_conj().resolve_neg().reshape(-1)
        return array.view(torch.uint8).numpy().tobytes()
    return np.asarray(array).tobytes()


def random(shape, dtype, seed=0):
    """Random bits, and so NaN payloads too; bools are 0 or 1. A seed may be a generator."""
    dtype = np.dtype(dtype) if not isinstance(dtype, str) else numpy_dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    data = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    if dtype == np.bool_:
        data &= 1
    return data.view(dtype).reshape(shape)


def mask(shape, seed=9):
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


def same(dtype="float32", shape=SHAPE):
    return Workload(shape, shape, shape, dtype)


expected = np.where


def frozen(array):
    """The array itself, which can no longer be written."""
    array.flags.writeable = False
    return array


def shifted(array, by):
    """A copy so many bytes behind the begin of a page."""
    memory = np.frombuffer(mmap.mmap(-1, array.nbytes + by + 1), np.uint8)
    copied = memory[by:-1].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied
