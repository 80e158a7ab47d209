"""Expressions as exporters write them: ``past_sequence_length + sequence_length``, ``s16 + s62``.

The text is read as arithmetic over names. A text that is not arithmetic is one name, whatever it
says. So is a single number: some exporters use ``"2"`` as the name of a size that may differ at the
call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from te_select.frontends.symbolic.expressions import (
    UNKNOWN,
    Expression,
    Scalar,
    Unknown,
    add,
    call,
    floor_divide,
    modulo,
    multiply,
    subtract,
    symbol,
)
from te_select.frontends.symbolic.ordering import maximum, minimum

_ARITHMETIC = re.compile(r"[\w\s.+*/%(),-]{1,400}", re.ASCII)
_NUMBER_AND_NAME = re.compile(r"(?<!\w)\d+[A-Za-z_]")  # Python warns of some of these
_HIGHEST_POWER = 8

_FUNCTIONS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "Min": minimum,
    "min": minimum,
    "Max": maximum,
    "max": maximum,
    "FloorDiv": floor_divide,
    "Mod": modulo,
    "PythonMod": modulo,
}


def parse(text: str) -> Expression:
    """Read a dim that is not an int.

    Parameters
    ----------
    text
        The text in the file; not empty.

    Returns
    -------
    Expression
        Its arithmetic, or a name with that text.
    """
    found = _arithmetic(text)
    if isinstance(found, Expression):
        return found
    words = " ".join(text.split())
    return symbol(f"'{words}'" if words.startswith("?") else words)


def evaluate(text: str, sizes: Mapping[str, int]) -> int | None:
    """Compute a dim's text at given sizes.

    Parameters
    ----------
    text
        A text of `ModelNode.dims`.
    sizes
        A size for each of the names in it.

    Returns
    -------
    int or None
        None if a name has no size, or the text is not arithmetic.
    """
    value = _arithmetic(text, sizes)
    return None if isinstance(value, Expression | Unknown) else value


def _arithmetic(text: str, sizes: Mapping[str, int] | None = None) -> Scalar:
    """The text's value; `UNKNOWN` if it is not arithmetic."""
    if not _ARITHMETIC.fullmatch(text) or _NUMBER_AND_NAME.search(text):
        return UNKNOWN
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, sizes or {})
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return UNKNOWN


def _value(node: ast.expr, sizes: Mapping[str, int]) -> Scalar:
    if isinstance(node, ast.Name):
        return sizes[node.id] if node.id in sizes else symbol(node.id)
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else UNKNOWN
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return multiply(_value(node.operand, sizes), -1)
    if isinstance(node, ast.BinOp) and type(node.op) in _INFIX:
        return _INFIX[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _called(node.func.id, node.args, sizes)
    return UNKNOWN


def _power(base: Scalar, exponent: Scalar) -> Scalar:
    if not isinstance(exponent, int) or not 0 <= exponent <= _HIGHEST_POWER:
        return UNKNOWN
    value: Scalar = 1
    for _ in range(exponent):
        value = multiply(value, base)
    return value


def _called(function: str, args: list[ast.expr], sizes: Mapping[str, int]) -> Scalar:
    if function == "floor" and len(args) == 1:
        (arg,) = args
        if isinstance(arg, ast.BinOp) and isinstance(arg.op, ast.Div):
            return floor_divide(_value(arg.left, sizes), _value(arg.right, sizes))
    values = [_value(arg, sizes) for arg in args]
    if function in _FUNCTIONS and len(values) == 2:  # noqa: PLR2004 - of two arguments
        return _FUNCTIONS[function](*values)
    known = [value for value in values if not isinstance(value, Unknown)]
    return call(function, known) if len(known) == len(values) else UNKNOWN


_INFIX: dict[type[ast.operator], Callable[[Scalar, Scalar], Scalar]] = {
    ast.Add: add,
    ast.Sub: subtract,
    ast.Mult: multiply,
    ast.FloorDiv: floor_divide,
    ast.Mod: modulo,
    ast.Pow: _power,
}
