"""Partial shapes of the corpus, replaced by concrete ones that they allow.

A dim is an int, -1 (unknown), ``[lo, hi]`` (where -1 means open), or a symbol. A shape is a list of
dims, ``{"rank": n}``, or None if even the rank is unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from te_select.operator.broadcast import Dim

Dims = tuple[Dim, ...]

OPERANDS = ("then", "else", "cond")  # then is first: as the base of pdpd it must have the size
_SYMBOL_SIZES = ((2, 3, 5, 7, 11, 13), (1, 1, 1, 1, 1, 1))


@dataclass(frozen=True)
class Instance:
    """One set of concrete shapes; its label tells it from the others of its case."""

    label: str
    shapes: Mapping[str, Dims]
    out: Dims
    sizes: Mapping[str, int] = field(default_factory=dict)


def instances(case):  # noqa: PLR0911
    """Concrete shapes that a case allows, and the reason if there are none."""
    if "cond_pshape" not in case:
        shapes = {operand: tuple(case[f"{operand}_shape"]) for operand in OPERANDS}
        return [Instance("", shapes, tuple(case.get("out_shape", ())))], ""
    if "targets" in case:
        return [
            Instance(f"target {i}", {o: tuple(t[o]) for o in OPERANDS}, tuple(t["out"]))
            for i, t in enumerate(case["targets"])
        ], ""
    shapes = {operand: _dims(case[f"{operand}_pshape"]) for operand in OPERANDS}
    if case["expect"] == "error":
        # An open dim becomes 1, which broadcasts. So only static dims can still clash.
        closed = {o: tuple(_closed(dim) for dim in dims or ()) for o, dims in shapes.items()}
        return [Instance("open dims as 1", closed, ())], ""
    out = _dims(case["out_pshape"])
    equal = case["attrs"].get("auto_broadcast") == "none"
    if equal and out is not None:  # then the ranks are equal too, and known
        shapes = {operand: out if dims is None else dims for operand, dims in shapes.items()}
    known = {operand: dims for operand, dims in shapes.items() if dims is not None}
    if out is None or len(known) < len(shapes):
        return [], "partial shapes of unknown rank are outside Workload"
    if case["attrs"].get("axis", -1) != -1:
        return [], "partial shapes under an explicit axis are not given sizes here"
    if any(isinstance(dim, str) for dims in known.values() for dim in dims):
        return _symbolic(known, out), ""
    made = [_instance("open dims equal", known, out, spread=False)]
    if not equal:
        made.append(_instance("open dims broadcast", known, out, spread=True))
    return made, ""


def _dims(shape):
    return [-1] * shape["rank"] if isinstance(shape, dict) else shape


def _closed(dim):
    return dim if isinstance(dim, int) and dim != -1 else 1


def _symbolic(shapes, out):
    """Symbols as named dims, run with distinct sizes and with 1; a name of size 1 stays a name."""
    names = sorted({dim for dims in shapes.values() for dim in dims if isinstance(dim, str)})
    made = {operand: tuple(dims) for operand, dims in shapes.items()}
    return [
        Instance(
            f"{','.join(names)} = {','.join(map(str, sizes[: len(names)]))}",
            made,
            tuple(out),
            dict(zip(names, sizes, strict=False)),
        )
        for sizes in _SYMBOL_SIZES
    ]


def _instance(label, shapes, out, *, spread):
    """Choose a size for every output axis; with ``spread`` as few operands as possible have it."""
    rank = len(out)
    made = {operand: [] for operand in shapes}
    result = []
    for axis in range(-rank, 0):
        dims = {o: shape[axis] for o, shape in shapes.items() if -axis <= len(shape)}
        size = _size(list(dims.values()), out[axis])
        result.append(size)
        carried = any(dim == size for dim in dims.values())
        for operand, dim in dims.items():
            may_stay = _allows(dim, 1) and ((spread and carried) or not _allows(dim, size))
            made[operand].append(1 if may_stay else size)
            carried = carried or not may_stay
    return Instance(label, {o: tuple(dims) for o, dims in made.items()}, tuple(result))


def _size(dims, out):
    """The size of one output axis: the fixed one, else the least above 1 in all intervals."""
    fixed = [dim for dim in (out, *dims) if isinstance(dim, int) and dim not in {-1, 1}]
    if fixed:
        return fixed[0]
    if dims and all(dim == 1 for dim in dims):
        return 1
    lows = [dim[0] for dim in (*dims, out) if isinstance(dim, list)]
    return max([2, *lows])


def _allows(dim, size):
    if isinstance(dim, list):
        low, high = dim
        return bool(low <= size and (high == -1 or size <= high))
    return dim in (-1, size)
