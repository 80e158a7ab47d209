"""The doors of a CPU: a kernel, and where() for operands of any shapes, each in several ways."""

import dataclasses
from ctypes import CFUNCTYPE, byref, c_char_p, c_int64, c_size_t, c_void_p

import numpy as np
import tvm_ffi

from te_select import ArgumentError, DTypeError, SelectError
from te_select.operator import family
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.runtime.artifact.manifest import c_name
from te_select.runtime.call import image, loading
from te_select.runtime.call.cuda.device_array import DeviceArray
from tests.support.hand_made import HandMade, handed
from tests.support.oracle.cases import WORKLOADS
from tests.support.oracle.comparison import NAMES, Door
from tests.support.runtime_standin import build, manifest
from tests.support.where_recorder import call_of

NUMBERS = frozenset({"number", "half", "wide number"})
NUMBERS |= {"large number", "foreign number", "other number", "wild number"}
OF_TENSORS = NUMBERS | {"shape", "size", "lower rank", "type", "lanes", "strides", "itself"}
OF_TENSORS |= {"device", "read-only", "no tensor", "negative", "too many"}
"""Oddities that only what describes a tensor can have."""


_NOT_OF_NUMPY = {name for name, element in ELEMENT_TYPES.items() if not element.in_numpy}


def by_packed_function(packed, given):
    packed(*(_tensor(given[name]) for name in NAMES))


def _tensor(operand):
    """What tvm-ffi takes; NumPy cannot hand over bfloat16 and the like."""
    if isinstance(operand, np.ndarray) and operand.dtype.name in _NOT_OF_NUMPY:
        operand = handed(operand)
    return tvm_ffi.from_dlpack(operand) if isinstance(operand, HandMade) else operand


def call_plain(
    opened,
    workload,
    *operands,
    sizes=(),
    more=(),
):
    """Call the plain C function of a kernel; its status, and the last error without its name."""
    opened.te_select_error.restype = c_char_p
    pointers = (c_void_p(_address(operand)) for operand in operands)
    status = opened[c_name(workload)](*pointers, *map(c_int64, sizes), *more)
    return status, opened.te_select_error().decode().removeprefix(f"{workload.name}: ")


def _address(operand):
    if isinstance(operand, np.ndarray):
        return operand.ctypes.data
    if isinstance(operand, HandMade):
        return operand.tensor.data
    return operand.memory.address if isinstance(operand, DeviceArray) else operand


def by_plain_function(library, workload, given, *more):
    found = dict(_sizes(workload, given)) if workload.dim_names else {}
    sizes = [found[name] for name in workload.dim_names]
    operands = (given[name] for name in NAMES)
    status, message = call_plain(code(library), workload, *operands, sizes=sizes, more=more)
    if status:
        raise {1: ValueError, 2: RuntimeError}[status](message)


def _sizes(workload, given):
    shapes = (workload.cond_shape, workload.then_shape, workload.else_shape)
    for shape, name in zip(shapes, NAMES, strict=False):
        for dim, extent in zip(shape, given[name].shape, strict=True):
            if isinstance(dim, str):
                yield dim, extent


def code(library):
    """A loaded library as ctypes has opened it."""
    return next(iter(library.values()))._code


def function(library, name):
    """An exported function of a loaded library."""
    return image.open_again(code(library)).get_function(name)


def _by_where_in_c(library, given, pool=None):
    filled = call_of(*(given[name] for name in NAMES))
    result = code(library).te_select_where_call_on(byref(filled), pool, None, 3)
    if result < 0:
        raise ValueError(f"result {result}")


_PIECE = CFUNCTYPE(None, c_void_p, c_size_t)


@CFUNCTYPE(None, c_void_p, _PIECE, c_size_t, c_void_p)
def _one_by_one(_pool, piece, count, data):
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
        "large number": (ArgumentError, "^{} is .*out of range"),
        **dict.fromkeys(("foreign number", "other number"), (DTypeError, "^{} is ")),
        "wild number": (SelectError, "^{} is "),
    },
    allocates=True,
)
"""A kernel, called from Python."""
_NO_TENSOR = (TypeError, "is not a tensor")
_OF_NUMBERS = dict.fromkeys(NUMBERS - {"wild number"}, _NO_TENSOR)
PACKED = Door(
    lambda library, workload, given: by_packed_function(library[workload.name].function, given),
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
    }
    | _OF_NUMBERS,
    frozenset({"read-only", "frozen", "wild number"}),
)
"""The exported function of a kernel, called by tvm-ffi."""


def _by_entry(library, workload, given):
    if not library[workload.name]._entry(*given.values()):
        raise ValueError("refused")


ENTRY = Door(
    _by_entry,
    dict.fromkeys(
        (OF_TENSORS - {"number", "half"}) | {"overlap", "no memory", "past the end"},
        (ValueError, "refused"),
    ),
    takes=lambda given: (
        not any(
            isinstance(each, np.ndarray) and each.dtype.name in _NOT_OF_NUMPY
            for each in given.values()
        )
    ),
)
"""A kernel, called by NumPy's C API, which leaves to Python what it does not know."""
PLAIN = Door(
    by_plain_function,
    {
        "overlap": (ValueError, "out overlaps {}; expected memory of its own"),
        "misaligned": (ValueError, "{} begins at .*; expected an address divisible by"),
        "no memory": (ValueError, "{} has a null data pointer; expected 48 bytes"),
        "past the end": (ValueError, "{} has byte_offset 0, which leads out"),
    },
    OF_TENSORS,
)
"""The plain C function of a kernel."""
_OVERLAP = (ValueError, "out overlaps an input")
WHERE_PACKED = Door(
    lambda library, _, given: by_packed_function(function(library, family.FUNCTION), given),
    {
        "shape": (ValueError, "does not broadcast to out|is larger than what the inputs"),
        "size": (ValueError, "does not broadcast to out"),
        "type": (TypeError, "is not of out.s type|is not boolean"),
        "lanes": (TypeError, "is not of out.s type|is not boolean"),
        "overlap": _OVERLAP,
        "itself": _OVERLAP,
        "device": (ValueError, "is not in memory of the CPU"),
        "no tensor": _NO_TENSOR,
        "no memory": (ValueError, "has no memory"),
        "negative": (ValueError, "has a negative dim"),
        "too many": (ValueError, "has more elements than any memory"),
    }
    | _OF_NUMBERS,
    frozenset({"past the end", "read-only", "frozen", "element's width", "wild number"}),
    any_shapes=True,
)
"""The exported function of the family, for operands of any shapes, called by tvm-ffi."""
WHERE_IN_C = Door(
    lambda library, _, given: _by_where_in_c(library, given),
    dict.fromkeys(("overlap", "itself"), (ValueError, "result -4")),
    (OF_TENSORS | {"no memory", "past the end"}) - {"strides", "itself"},
    any_shapes=True,
)
"""The same for C."""
WHERE_ON_POOL = dataclasses.replace(
    WHERE_IN_C, call=lambda library, _, given: _by_where_in_c(library, given, _one_by_one)
)
"""The same on the threads of a caller."""
DOORS = {
    "kernel": KERNEL,
    "kernel's entry": ENTRY,
    "packed function": PACKED,
    "plain function": PLAIN,
    "where by tvm-ffi": WHERE_PACKED,
    "where in C": WHERE_IN_C,
    "where on a pool": WHERE_ON_POOL,
}


def library(folder, **how):
    """A library of a CPU with all workloads of the cases and all of where(), in plain C."""
    places = family.places(family.parts())
    workloads = [*WORKLOADS, *places]
    path = folder / "oracle.so"
    build(workloads, path, described=manifest(workloads, plain=True), places=places, **how)
    return loading.load(path)
