"""The door of ONNX Runtime: a session of one Where, which is given the addresses of operands."""

import ctypes
from functools import cache

import numpy as np
import onnxruntime

from te_select.frontends.onnx_graph.nodes import DTYPES
from te_select.onnxruntime import OF_CPU
from te_select.operator.dtypes import ELEMENT_TYPES, numpy_dtype
from tests.support.oracle.comparison import Door
from tests.support.oracle.doors_of_cpu import OF_TENSORS
from tests.support.ort_models import WHERE, one_where, session

_TYPES = {
    name: number
    for number, name in DTYPES.items()
    if name in ELEMENT_TYPES and not name.startswith(("float8", "complex"))
}


@cache
def _registered(path):
    """The CPU as te-select's provider in a library sees it, and as that of ONNX Runtime does."""
    onnxruntime.register_execution_provider_library(path, path)
    devices = {each.ep_metadata.get("library_path"): each for each in onnxruntime.get_ep_devices()}
    own = next(each for each in devices.values() if each.ep_name == OF_CPU)
    return [devices[path], own]


@cache
def _session(path, dtype, opset):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    for device in _registered(path):
        options.add_provider_for_devices([device], {})
    return session(one_where(dtype, (None,) * 3, opsets={"": opset}), options)


def _are_of_onnx(given):
    """Whether a session has such operands: C-contiguous, and of a type that ONNX's Where has."""
    arrays = list(given.values())
    return all(array.flags.c_contiguous and array.dtype.name in _TYPES for array in arrays)


def _by_session(loaded, _workload, given):
    path = str(next(iter(loaded.values())).path)
    dtype = given["then"].dtype.name
    out = given["out"]
    # The first opset with the Where of today, and the last; an older one has no bfloat16.
    made = _session(path, dtype, 9 if out is None and dtype != "bfloat16" else 23)
    binding = made.io_binding()
    for name, array in zip(WHERE, given.values(), strict=False):
        kind = _TYPES[array.dtype.name]
        binding.bind_input(name, "cpu", 0, kind, array.shape, array.ctypes.data)
    if out is None:
        binding.bind_output("o", "cpu")
    else:
        binding.bind_output("o", "cpu", 0, _TYPES[dtype], out.shape, out.ctypes.data)
    counter = ctypes.CDLL(path).te_select_ort_calls
    counter.restype = ctypes.c_int64
    before = counter()
    made.run_with_iobinding(binding)
    assert counter() == before + 1, "ONNX Runtime has run the node itself"
    return out if out is not None else _array(binding.get_outputs()[0], dtype)


def _array(value, dtype):
    kind = numpy_dtype(dtype)
    size = int(np.prod(value.shape())) * kind.itemsize
    return np.frombuffer(ctypes.string_at(value.data_ptr(), size), kind).reshape(value.shape())


SESSION = Door(
    _by_session,
    dict.fromkeys(
        ("shape", "size"),
        (RuntimeError, "do not broadcast with each other|but the computed output shape"),
    ),
    (OF_TENSORS | {"no memory", "past the end"}) - {"shape", "size", "lower rank"},
    takes=_are_of_onnx,
    allocates=True,
    any_shapes=True,
)
DOORS = {"session of ONNX Runtime": SESSION}
