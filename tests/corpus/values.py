"""The operands of corpus cases: literal lists, NumPy expressions, random bits, and views."""

import numpy as np

from te_select.operator.dtypes import numpy_dtype
from te_select.verify.reference import ints
from tests.corpus.cases import OPEN, SHORT_NAMES
from tests.support.strategies import random_bits

_NUMERIC = ("f16", "f32", "f64", "i8", "u8", "i32", "i64")
NUMERIC_CONDS = {  # systems whose cond may be of other types than boolean
    "numpy.where": _NUMERIC,
    "onednn.binary_select": ("s8",),
    "openvino.gpu_select_primitive": _NUMERIC,
}


def literal(case, operand, dtype):
    """The values that a case gives for an operand or for out, flat; None if it leaves them open."""
    target = numpy_dtype(dtype)
    if f"{operand}_expr" in case:
        return np.asarray(eval(case[f"{operand}_expr"], {"np": np})).astype(target).reshape(-1)
    if operand not in case:
        return None
    raw = case.get("cond_are_raw_bits" if operand == "cond" else "data_are_raw_bits", False)
    if raw and target.kind == "f":
        return np.array(case[operand], f"u{target.itemsize}").view(target)
    return np.array(case[operand]).astype(target)


def operands(run, workload, random):
    """The three operands of a run, laid out as the case asks."""
    cond_dtype = run.case["cond_dtype"]
    sides = (workload.cond_shape, workload.then_shape, workload.else_shape)
    shapes = [ints(shape) for shape in sides]
    if cond_dtype in ("boolean", OPEN, *NUMERIC_CONDS.get(run.case["op"], ())):
        cond = _condition(run.case, SHORT_NAMES.get(cond_dtype, "bool"), shapes[0], random)
    else:  # the case is not legal, so the kernel gets cond as it is and must refuse it
        cond = _values(run.case, "cond", SHORT_NAMES[cond_dtype], shapes[0], random)
    then = _values(run.case, "then", run.then_dtype, shapes[1], random)
    else_ = _values(run.case, "else", run.else_dtype, shapes[2], random)
    return tuple(_laid_out(each, run) for each in (cond, then, else_))


def _condition(case, dtype, shape, random):
    """The condition as bools; one of a byte is only viewed, so that the kernel reads every byte.

    Floats are not truncated, and a subnormal is true.
    """
    values = literal(case, "cond", dtype)
    if values is None:
        values = random_bits(random, shape, dtype)
        values[random.integers(0, 2, shape, np.uint8) == 1] = 0  # random bytes are rarely 0
    truths = values.view(np.bool_) if values.dtype.itemsize == 1 else values != 0
    return truths.reshape(shape)


def _values(case, operand, dtype, shape, random):
    values = literal(case, operand, dtype)
    return random_bits(random, shape, dtype) if values is None else values.reshape(shape)


def _laid_out(values, run):
    """The same values transposed, or as a view of a larger buffer."""
    attrs = run.case["attrs"]
    if run.layout == "F":
        return np.asfortranarray(values)
    if "view_of_length" not in attrs:
        return values
    bounds = (int(part) if part else None for part in attrs["slice_all"].split(":"))
    view = np.zeros(attrs["view_of_length"], values.dtype)[slice(*bounds)]
    view[...] = values
    return view
