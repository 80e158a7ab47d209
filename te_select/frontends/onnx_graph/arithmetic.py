"""Arithmetic on the elements of small tensors: ints, bools and expressions, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from te_select.frontends.onnx_graph.nodes import NUMBERS, Node
from te_select.frontends.symbolic import expressions as ex
from te_select.frontends.symbolic import ordering as order
from te_select.frontends.symbolic.expressions import UNKNOWN, Expression, Scalar, Unknown
from te_select.frontends.symbolic.tensors import Values

SIGNED = ("int64", "int32")
HOLDS_SIZES = (*SIGNED, "uint64", "uint32")
_EXACT_FLOATS = 2**53  # ints below it are exact as floats


def _truncating_divide(a: Scalar, b: Scalar) -> Scalar:
    if isinstance(a, int) and isinstance(b, int):
        return UNKNOWN if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    same = order.at_least(a, 0) and order.at_least(b, 0)  # then rounding down is towards zero
    return ex.floor_divide(a, b) if same else UNKNOWN


def _remainder(a: Scalar, b: Scalar) -> Scalar:
    """``a % b`` if both are positive; otherwise ``fmod`` chooses between two remainders."""
    return ex.modulo(a, b) if order.at_least(a, 0) and order.at_least(b, 1) else UNKNOWN


def _where(cond: Any, then: Scalar, else_: Scalar) -> Scalar:
    if isinstance(cond, Expression | Unknown):
        return then if then == else_ else UNKNOWN
    return then if cond else else_


def _absolute(a: Scalar) -> Scalar:
    return abs(a) if isinstance(a, int) else a if order.at_least(a, 0) else UNKNOWN


def _not(a: Any) -> Any:
    return UNKNOWN if isinstance(a, Unknown) else not a


def _and(a: Any, b: Any) -> Any:
    if False in (a, b):
        return False
    return UNKNOWN if UNKNOWN in (a, b) else True


def _or(a: Any, b: Any) -> Any:
    if True in (a, b):
        return True
    return UNKNOWN if UNKNOWN in (a, b) else False


def _at_most(a: Scalar, b: Scalar) -> Any:
    return _not(order.less(b, a))


def _each(function: Callable[..., Any], count: int) -> Callable[..., list[Any]]:
    """Make a rule from a function of elements; the inputs broadcast."""
    apply = np.frompyfunc(function, count, 1)

    def rule(_node: Node, inputs: Sequence[Values]) -> list[Any]:
        if len(inputs) == count:
            return [apply(*inputs)]
        result: Any = inputs[0]
        for other in inputs[1:]:  # Min and Max take any number
            result = apply(result, other)
        return [result]

    return rule


def _cast(node: Node, inputs: Sequence[Values]) -> list[Any]:
    target = node.get("to")
    if target == NUMBERS["bool"]:
        return [np.frompyfunc(lambda v: _not(order.equal(v, 0)), 1, 1)(inputs[0])]
    keeps = [number for name, number in NUMBERS.items() if name in HOLDS_SIZES]
    if target not in keeps:
        return [None]
    return [np.frompyfunc(_as_int, 1, 1)(inputs[0])]


def _as_int(value: Any) -> Scalar:
    if isinstance(value, float):
        return int(value) if abs(value) < _EXACT_FLOATS else UNKNOWN  # NaN is not
    return int(value) if isinstance(value, bool) else value


ARITHMETIC: dict[str, Callable[[Node, Any], list[Any]]] = {
    "Abs": _each(_absolute, 1),
    "Add": _each(ex.add, 2),
    "And": _each(_and, 2),
    "Cast": _cast,
    "Div": _each(_truncating_divide, 2),
    "Equal": _each(order.equal, 2),
    "Greater": _each(lambda a, b: order.less(b, a), 2),
    "GreaterOrEqual": _each(lambda a, b: _at_most(b, a), 2),
    "Less": _each(order.less, 2),
    "LessOrEqual": _each(_at_most, 2),
    "Max": _each(order.maximum, 2),
    "Min": _each(order.minimum, 2),
    "Mod": _each(_remainder, 2),
    "Mul": _each(ex.multiply, 2),
    "Neg": _each(lambda a: ex.multiply(a, -1), 1),
    "Not": _each(_not, 1),
    "Or": _each(_or, 2),
    "Sub": _each(ex.subtract, 2),
    "Where": _each(_where, 3),
}
