"""The data of corpus cases: literal lists, small NumPy expressions, random bits, and views."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from te_select.errors import SelectError
from te_select.operator.dtypes import numpy_dtype
from te_select.verify.reference import Array, random_bits

_FUNCTIONS = {
    name: getattr(np, name)
    for name in ("arange", "broadcast_to", "float32", "full", "ones", "stack", "where", "zeros")
}


def literal(case: Mapping[str, Any], operand: str, dtype: str) -> Array | None:
    """The values that a case gives for an operand, flat.

    Parameters
    ----------
    case
        The case.
    operand
        ``"cond"``, ``"then"``, ``"else"`` or ``"out"``.
    dtype
        Element type to read them as.

    Returns
    -------
    array or None
        The values in row-major order; None if the case leaves them open.
    """
    if f"{operand}_expr" in case:
        return np.asarray(evaluate(case[f"{operand}_expr"])).astype(numpy_dtype(dtype)).reshape(-1)
    if operand not in case:
        return None
    raw = case.get("cond_are_raw_bits" if operand == "cond" else "data_are_raw_bits", False)
    target = numpy_dtype(dtype)
    if raw and target.kind == "f":
        return np.array(case[operand], f"u{target.itemsize}").view(target)
    return np.array(case[operand]).astype(target)


def evaluate(expression: str) -> Any:
    """Compute a NumPy expression of the corpus; only a few functions and literals are allowed.

    Parameters
    ----------
    expression
        Such as ``"np.full((3,3),np.inf)"``.

    Returns
    -------
    array or number
        Its value.

    Raises
    ------
    SelectError
        If the expression uses anything else, because a data file must not run code.
    """
    try:
        return _value(ast.parse(expression, mode="eval").body)
    except (KeyError, SyntaxError, TypeError, ValueError, MemoryError, RecursionError) as error:
        raise SelectError(
            f"expression {expression!r} cannot be read; expected np.{', np.'.join(_FUNCTIONS)}, "
            f"np.inf, np.nan, numbers, tuples and >"
        ) from error


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_value(item) for item in items)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.Compare(left=left, ops=[ast.Gt()], comparators=[right]):
            return _value(left) > _value(right)
        case ast.Attribute(value=ast.Name(id="np"), attr="inf" | "nan" as name):
            return float(name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), args=args):
            return _FUNCTIONS[name](*map(_value, args))
    raise ValueError(ast.dump(node))


def condition(
    case: Mapping[str, Any], cond_dtype: str, shape: tuple[int, ...], random: np.random.Generator
) -> Array:
    """The condition of a case, as the boolean array that te-select takes.

    Numeric conditions are true where they are not 0. Floats are not truncated, and a subnormal is
    true. One-byte conditions are only viewed, so that the kernel itself reads every byte.

    Parameters
    ----------
    case
        The case.
    cond_dtype
        Element type of its condition.
    shape
        Shape of the condition.
    random
        Source of the data if the case gives none.

    Returns
    -------
    array of bool
        The condition.
    """
    values = literal(case, "cond", cond_dtype)
    if values is None:
        values = random_bits(random, shape, cond_dtype)
        values[random.integers(0, 2, shape, np.uint8) == 1] = 0  # random bytes are rarely 0
    if values.dtype.itemsize == 1:
        return values.view(np.bool_).reshape(shape)
    truths: Array = (values != 0).reshape(shape)
    return truths


def operand_values(
    case: Mapping[str, Any],
    operand: str,
    dtype: str,
    shape: tuple[int, ...],
    random: np.random.Generator,
) -> Array:
    """The values of then or else; random bits if the case gives none."""
    values = literal(case, operand, dtype)
    if values is None:
        values = random_bits(random, shape, dtype)
    return values.reshape(shape)


def laid_out(values: Array, attrs: Mapping[str, Any], layout: str) -> Array:
    """Put values into the layout that the case asks for.

    Parameters
    ----------
    values
        The values.
    attrs
        The case's attributes: ``slice_all`` of a buffer of ``view_of_length`` elements.
    layout
        ``"F"`` for a transposed view, otherwise ``"C"``.

    Returns
    -------
    array
        The same values, strided.
    """
    if layout == "F":
        return np.asfortranarray(values)
    if "view_of_length" not in attrs:
        return values
    bounds = (int(part) if part else None for part in attrs["slice_all"].split(":"))
    view = np.zeros(attrs["view_of_length"], values.dtype)[slice(*bounds)]
    view[...] = values
    return view
