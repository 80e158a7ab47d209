"""The broadcast rules of Select: the output shape, and where each operand's axes land in it.

Four rules are in use:

``none``
    All three shapes are equal, rank included.
``numpy``
    Two steps. First then and else broadcast to each other. After that cond broadcasts one-way to
    the result.
``pdpd``
    The operand then is the base. First else and after it cond are laid over it from ``axis`` on.
``multidirectional``
    All three broadcast to each other.

A dim is an int or a name. A name is a size known only at call time. It equals itself and nothing
else. Only the literal 1 broadcasts.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from te_select.errors import BroadcastError, caught

Dim = int | str
Shape = tuple[Dim, ...]
Axes = tuple[int | None, ...]

# Each rule in words, of `broadcast`'s arguments.
IN_WORDS = {
    "none": "none, all shapes are equal",
    "numpy": "numpy, then with else_, and cond to their result; shapes are aligned right",
    "pdpd": "pdpd, else_ and cond to then, from its axis {axis} on",
    "multidirectional": "multidirectional, all three with each other; shapes are aligned right",
}
RULES = tuple(IN_WORDS)
LONGEST_SHOWN = 160  # characters of an offending value, or bits of an int
MAX_RANK = 64  # NumPy's own limit; higher ranks could not be verified
MAX_ELEMENTS = 2**57  # byte offsets of 16-byte elements stay far inside 64 bits
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


@dataclass(frozen=True)
class Broadcast:
    """How three shapes combine under one rule.

    Parameters
    ----------
    branches_shape
        Result of the first step, the broadcast of then and else.
    out_shape
        Shape of the output.
    cond_axes, then_axes, else_axes
        For every axis of the operand, the output axis that it moves along; None for a broadcast
        axis, whose extent in the operand is 1.
    """

    branches_shape: Shape
    out_shape: Shape
    cond_axes: Axes
    then_axes: Axes
    else_axes: Axes

    @property
    def axes(self) -> tuple[Axes, Axes, Axes]:
        """Those of cond, then and else."""
        return self.cond_axes, self.then_axes, self.else_axes


def count_of(count: int, what: str) -> str:
    """So many of something, for people: ``1 record``, ``2 records``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def parse_shape(shape: Iterable[Any], operand: str) -> Shape:
    """Check a shape and convert its dims to ``int`` and ``str``.

    Parameters
    ----------
    shape
        The dims: ints >= 0, or names that are identifiers of at most 63 characters.
    operand
        The operand's name, for messages.

    Returns
    -------
    Shape
        The same dims as a tuple.

    Raises
    ------
    BroadcastError
        If a dim is neither an int nor a name, the rank is above 64, or there are 2^57 elements or
        more.
    """
    unordered = (str, bytes, Set, Mapping)
    if isinstance(shape, unordered) or not isinstance(shape, Iterable):
        raise BroadcastError(
            f"{operand} shape {shown(shape)} is not a sequence of dims such as (4,)"
        )
    dims = tuple(_parse_dim(dim, operand) for dim in islice(shape, MAX_RANK + 1))
    if len(dims) > MAX_RANK:
        raise BroadcastError(
            f"{operand} has more than {MAX_RANK} dims; at most {MAX_RANK} are supported"
        )
    _check_size(dims, operand)
    return dims


def parse_axis(axis: Any) -> int:
    """Check the axis of a workload and convert it to ``int``.

    Raises
    ------
    BroadcastError
        If it is not an int that could be an axis, or -1.
    """
    number = _int_of(axis)
    if number is None or abs(number) > MAX_RANK:
        raise BroadcastError(f"axis {shown(axis)} is not -1 or an axis of then")
    return number


def broadcast(cond: Shape, then: Shape, else_: Shape, rule: str, axis: int = -1) -> Broadcast:
    """Combine the three shapes under ``rule``.

    Parameters
    ----------
    cond, then, else_
        Shapes of the three inputs.
    rule
        ``"none"``, ``"numpy"``, ``"pdpd"`` or ``"multidirectional"``.
    axis
        Under ``pdpd``, the axis of then at which else and cond start; -1 aligns each to the right.

    Returns
    -------
    Broadcast
        The output shape and the axes along which each operand moves.

    Raises
    ------
    BroadcastError
        If the shapes do not combine.

    Notes
    -----
    Sources: oneDNN Graph specification, Select, "Broadcasting rules"; OpenVINO Broadcast Rules,
    "none", "numpy" and "pdpd", with base and axis as ``Select::validate_and_infer_types`` resolves
    them; ONNX "Multidirectional Broadcasting".
    """
    if rule not in RULES:
        raise BroadcastError(f"auto_broadcast {shown(rule)} is not one of {', '.join(RULES)}")
    if axis != -1 and rule != "pdpd":
        raise BroadcastError(f"axis {axis} is given, but {rule!r} has no axis; leave it at -1")
    branches, out = _COMBINE[rule](cond, then, else_, axis)
    _check_size(out, "out")
    return Broadcast(
        branches, out, _axes(cond, out, axis), _axes(then, out, -1), _axes(else_, out, axis)
    )


def bound(shape: Shape, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A shape with sizes in the place of names."""
    return tuple(sizes[dim] if isinstance(dim, str) else dim for dim in shape)


def format_shape(shape: Shape) -> str:
    """Write a shape as ``[2,batch,1]``."""
    return f"[{','.join(str(dim) for dim in shape)}]"


def shown(value: Any) -> str:
    """Write any value for a message: on one line, and not too long."""
    if isinstance(value, int) and value.bit_length() > LONGEST_SHOWN:
        return f"an int of {value.bit_length()} bits"
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def printable(text: str) -> str:
    """Escape the control characters of an untrusted text."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _none(cond: Shape, then: Shape, else_: Shape, _axis: int) -> tuple[Shape, Shape]:
    if not cond == then == else_:
        raise BroadcastError(
            f"auto_broadcast 'none' wants three equal shapes, rank included: cond is "
            f"{format_shape(cond)}, then is {format_shape(then)}, else_ is {format_shape(else_)}"
        )
    return then, then


def _numpy(cond: Shape, then: Shape, else_: Shape, _axis: int) -> tuple[Shape, Shape]:
    branches = _both_ways("then", then, "else_", else_)
    base = "broadcast(then, else_)"
    try:
        return branches, _one_way("cond", cond, base, branches, -1)
    except BroadcastError as error:
        try:
            wider = _both_ways("cond", cond, base, branches)
        except BroadcastError:
            raise error from None
        raise BroadcastError(
            f"{error}; 'multidirectional', NumPy's own rule, would give {format_shape(wider)}"
        ) from None


def _pdpd(cond: Shape, then: Shape, else_: Shape, axis: int) -> tuple[Shape, Shape]:
    branches = _one_way("else_", else_, "then", then, axis, widens=True)
    return branches, _one_way("cond", cond, "then", branches, axis, widens=True)


def _multidirectional(cond: Shape, then: Shape, else_: Shape, _axis: int) -> tuple[Shape, Shape]:
    branches = _both_ways("then", then, "else_", else_)
    return branches, _both_ways("cond", cond, "broadcast(then, else_)", branches)


_COMBINE: dict[str, Callable[[Shape, Shape, Shape, int], tuple[Shape, Shape]]] = {
    "none": _none,
    "numpy": _numpy,
    "pdpd": _pdpd,
    "multidirectional": _multidirectional,
}


def _both_ways(name_a: str, a: Shape, name_b: str, b: Shape) -> Shape:
    """Broadcast two shapes to each other: per axis the dim that is not 1."""
    pairs = list(zip_longest(reversed(a), reversed(b), fillvalue=1))
    out: list[Dim] = []
    for i, (left, right) in enumerate(reversed(pairs), -len(pairs)):
        if left not in (right, 1) and right != 1:
            raise BroadcastError(
                f"{name_a} {format_shape(a)} and {name_b} {format_shape(b)} do not broadcast: "
                f"axis {i} is {left} against {right}; they must be equal or one must be 1"
            )
        out.append(right if left == 1 else left)
    return tuple(out)


def _one_way(
    name: str, src: Shape, base_name: str, base: Shape, axis: int, *, widens: bool = False
) -> Shape:
    """Lay ``src`` over ``base`` from an axis on.

    If the base ``widens``, a src dim of 0 replaces a base dim of 1. This is the one case in which
    it does under pdpd's rule "src dim <= base dim".
    """
    offset = _offset(src, base, axis)
    if offset < 0 or offset + len(src) > len(base):
        raise BroadcastError(
            f"{name} {format_shape(src)} does not fit into {base_name} {format_shape(base)} at "
            f"axis {offset}; it must lie within rank {len(base)}"
        )
    out = list(base)
    for i, dim in enumerate(src, start=offset):
        if widens and base[i] == 1 and dim == 0:
            out[i] = 0
        elif dim not in (base[i], 1):
            raise BroadcastError(
                f"{name} {format_shape(src)} does not broadcast to {base_name} "
                f"{format_shape(base)}: axis {i} is {dim}, expected "
                f"{base[i] if base[i] == 1 else f'{base[i]} or 1'}"
            )
    return tuple(out)


def _offset(src: Shape, base: Shape, axis: int) -> int:
    """Axis of ``base`` at which ``src`` starts; -1 aligns to the right."""
    if axis < -1:
        raise BroadcastError(f"axis {axis} is not -1 or an axis of the base")
    return len(base) - len(src) if axis == -1 else axis


def _axes(shape: Shape, out: Shape, axis: int) -> Axes:
    """The axes of out along which an operand moves that starts at one."""
    start = _offset(shape, out, axis)
    return tuple(None if dim == 1 else i for i, dim in enumerate(shape, start))


def _parse_dim(dim: Any, operand: str) -> Dim:
    if isinstance(dim, str):
        if not _NAME.fullmatch(dim):
            raise BroadcastError(
                f"{operand} dim {shown(dim)} is not a name (letters, digits, _), and no int >= 0"
            )
        return dim
    size = _int_of(dim)
    if size is None or size < 0:
        raise BroadcastError(f"{operand} dim {shown(dim)} is neither an int >= 0 nor a name")
    if size >= MAX_ELEMENTS:
        raise BroadcastError(f"{operand} dim {shown(size)} is 2^57 elements or more")
    return size


def _int_of(value: Any) -> int | None:
    """The int that a value is, of whatever library; None for others and for booleans."""
    if str(getattr(value, "dtype", type(value).__name__)).endswith("bool"):
        return None
    try:
        return operator.index(value)
    except caught(Exception):  # whatever the object's own __index__ raises
        return None


def _check_size(shape: Shape, operand: str) -> None:
    literal = [dim for dim in shape if isinstance(dim, int) and dim != 0]
    if math.prod(literal) >= MAX_ELEMENTS:
        raise BroadcastError(f"{operand} {format_shape(shape)} has 2^57 elements or more")


def joined(first: tuple[int, ...], *others: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape to which shapes broadcast; None if they do not.

    NumPy's function for this takes 5x the time, and torch's 10x.
    """
    shape = first
    for other in others:
        longer, shorter = (shape, other) if len(shape) >= len(other) else (other, shape)
        before = len(longer) - len(shorter)
        if not shorter or longer[before:] == shorter:
            shape = longer
            continue
        extents = list(longer)
        for axis, extent in enumerate(shorter, before):
            if extents[axis] != extent and extent != 1:
                if extents[axis] != 1:
                    return None
                extents[axis] = extent
        shape = tuple(extents)
    return shape
