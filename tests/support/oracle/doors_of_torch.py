"""The doors for tensors of torch: a kernel, and where(), which does what torch.where does."""

import numpy as np
import torch

import te_select
from te_select import ArgumentError
from te_select.operator import family
from te_select.operator.dtypes import ELEMENT_TYPES, numpy_dtype
from te_select.selecting.kernels import library
from te_select.torch import where
from tests.support.hand_made import BOOL, HandMade, handed
from tests.support.operands import bits_of
from tests.support.oracle import doors_of_cpu as cpu
from tests.support.oracle.comparison import Door

_NUMBERS = (bool, int, float, complex)
_NO_TENSORS = frozenset({"no memory", "past the end", "negative", "too many", "lanes"})
_NO_TENSORS |= {"read-only", "frozen", "element's width"}
"""Oddities that no tensor has."""
_CRASHES = frozenset({"misaligned", "half an element", "half a vector"})
"""Oddities by which torch.where itself crashes."""


def _are_tensors(given):
    """Whether all arrays can be tensors, which have no negative strides."""
    arrays = [each for each in given.values() if isinstance(each, np.ndarray)]
    return all(step >= 0 for array in arrays for step in array.strides)


def _tensor(operand):
    """An array as a tensor of its memory; that of another device has none."""
    if isinstance(operand, HandMade):
        dtype = torch.bool if operand.tensor.code == BOOL else torch.float32
        return torch.empty(operand.tensor.shape[:2], dtype=dtype, device="meta")
    return torch.from_dlpack(handed(operand)) if isinstance(operand, np.ndarray) else operand


def _array(tensor):
    """A tensor as an array of its memory."""
    element = ELEMENT_TYPES[str(tensor.dtype).removeprefix("torch.")]
    if not element.in_numpy:
        tensor = tensor.view(torch.int8 if element.width == 1 else torch.int16)
    return tensor.numpy().view(numpy_dtype(element.name))


def _by_kernel(loaded, workload, given):
    tensors = {name: _tensor(operand) for name, operand in given.items()}
    out = tensors["out"]
    found = loaded[workload.name](**tensors)
    if out is None:
        return _array(found)
    assert found is out and out._version > 0, "no gradient would see that out is written"
    return given["out"]


def _by(function):
    """A call of a function, which tells all of its result."""

    def call(_library, _workload, given):
        *inputs, out = (_tensor(operand) for operand in given.values())
        found = function(*inputs) if out is None else function(*inputs, out=out)
        assert out is None or found is out
        bits = None if found.is_meta else bits_of(found)
        return found.dtype, found.device, found.shape, found.stride(), found._version, bits

    return call


def _by_torch(*inputs, out=None):
    """Select by torch.where, which takes no numbers beside out."""
    if out is None:
        return torch.where(*inputs)
    if any(type(each) in _NUMBERS for each in inputs):
        dtype = torch.where(*inputs).dtype
        inputs = tuple(
            torch.scalar_tensor(each, dtype=dtype) if type(each) in _NUMBERS else each
            for each in inputs
        )
    return torch.where(*inputs, out=out)


def _by_operator(*inputs, out=None):
    if out is None:
        return torch.ops.te_select.where(*inputs)
    torch.ops.te_select.where.out(*inputs, out=out)
    return out


def _by_entry(_library, _workload, given):
    entry = library.function_of_tensors(family.FUNCTION, torch.Tensor)
    if entry(*(_tensor(operand) for operand in given.values())) < 0:
        raise ValueError("refused")


KERNEL = Door(
    _by_kernel,
    cpu.KERNEL.refuses | {"device": (ArgumentError, "{} is .*on meta")},
    _NO_TENSORS,
    takes=_are_tensors,
    allocates=True,
)
"""A kernel, called with tensors."""
_ENTRY = Door(
    _by_entry,
    dict.fromkeys(
        ("shape", "size", "type", "overlap", "itself", "device", "no tensor", "restrided"),
        (ValueError, "refused"),
    ),
    _NO_TENSORS | cpu.NUMBERS,
    takes=lambda given: _are_tensors(given) and np.size(given["out"]) > 0,
    any_shapes=True,
)
"""The exported function of the family, called with tensors by the extension."""


def _like_torch(function, skips=frozenset()):
    return Door(
        _by(function),
        skips=_NO_TENSORS | _CRASHES | skips,
        takes=_are_tensors,
        any_shapes=True,
        like=_by(_by_torch),
    )


DOORS_OF_WHERE = {
    "entry for tensors": _ENTRY,
    "where() of tensors": _like_torch(te_select.where),
    "te_select.torch.where": _like_torch(where),
    "torch's operator": _like_torch(_by_operator, cpu.NUMBERS | {"no tensor"}),
}
"""where() with tensors of torch, in four ways."""
