"""Draw docs/pictures/*.svg: what Select does, by an example of each broadcast rule.

The shape of out, and the axes along which an operand moves, come from te_select itself.

    python docs/tools/pictures.py
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from te_select.errors import BroadcastError
from te_select.operator.broadcast import Axes, Shape, broadcast, format_shape

FOLDER = Path(__file__).resolve().parent.parent / "pictures"
CELL, GAP, LEFT, TOP = 30, 50, 16, 44
TRUE, FALSE, THEN, ELSE = "#ffffff", "#b4bcc2", "#9fd5c4", "#f6c08a"
MASK = ("1011", "0110")  # values of cond, by row and column
LETTERS = {"then": "abcdefghijkl", "else": "pqrstuvwxyz"}


@dataclass(frozen=True)
class Example:
    """Three shapes, and the rule that combines them to two axes or refuses them."""

    name: str
    rule: str
    cond: Shape
    then: Shape
    else_: Shape
    axis: int = -1


EXAMPLES = (
    Example("none", "none", (2, 3), (2, 3), (2, 3)),
    Example("numpy", "numpy", (3,), (2, 3), (2, 1)),
    Example("numpy_refused", "numpy", (2, 1), (3,), ()),
    Example("pdpd", "pdpd", (2, 3), (2, 3), (2,), axis=0),
    Example("multidirectional", "multidirectional", (2, 1), (3,), ()),
)


@dataclass(frozen=True)
class Operand:
    """An operand, laid over the output."""

    name: str
    shape: Shape
    axes: Axes

    def place(self, row: int, column: int) -> tuple[int, int]:
        """The row and the column of its own from which this place of out is taken."""
        return row * (0 in self.axes), column * (1 in self.axes)

    def value(self, row: int, column: int, columns: int) -> str:
        """A letter for each element of a side, 1 and 0 for cond."""
        own_row, own_column = self.place(row, column)
        if self.name == "cond":
            return MASK[own_row][own_column]
        return LETTERS[self.name][own_row * (columns if 1 in self.axes else 1) + own_column]


def svg(example: Example) -> str:
    """Draw ``cond ? then : else = out``; copies that broadcasting makes are pale."""
    shapes = (example.cond, example.then, example.else_)
    try:
        found = broadcast(*shapes, example.rule, example.axis)
        refused = False
    except BroadcastError:
        found = broadcast(*shapes, "multidirectional")
        refused = True
    rows, columns = (int(dim) for dim in found.out_shape)
    all_axes = (found.cond_axes, found.then_axes, found.else_axes)
    cond, then, else_ = (
        Operand(name, shape, axes)
        for name, shape, axes in zip(("cond", "then", "else"), shapes, all_axes, strict=True)
    )
    parts = []
    left = LEFT
    step = columns * CELL + GAP
    for operand, sign in ((cond, "?"), (then, ":"), (else_, "=")):
        parts.append(_text(left, TOP - 14, f"{operand.name} {format_shape(operand.shape)}"))
        for row, column in product(range(rows), range(columns)):
            letter = operand.value(row, column, columns)
            own = operand.place(row, column) == (row, column)
            parts.append(_cell(left, row, column, letter, "" if own else ' opacity="0.4"'))
        middle = TOP + rows * CELL // 2 + 7
        parts.append(_text(left + columns * CELL + GAP // 2 - 6, middle, sign, 20))
        left += step
    if refused:
        parts += [_text(left, TOP - 14, "refused:"), _text(left, TOP + 20, "cond would")]
        parts += [_text(left, TOP + 40, "widen out")]
    else:
        parts.append(_text(left, TOP - 14, f"out {format_shape(found.out_shape)}"))
        for row, column in product(range(rows), range(columns)):
            side = then if cond.value(row, column, columns) == "1" else else_
            parts.append(_cell(left, row, column, side.value(row, column, columns)))
    width = left + columns * CELL + LEFT
    height = TOP + rows * CELL + 16
    title = f"<title>{example.rule}: {' / '.join(map(format_shape, shapes))}</title>"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            f' width="{width}" height="{height}" font-family="sans-serif" font-size="15">',
            title,
            f'<rect width="{width}" height="{height}" rx="6" fill="#f7f8f9"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _cell(left: int, row: int, column: int, letter: str, more: str = "") -> str:
    colour = {"1": TRUE, "0": FALSE}.get(letter) or (THEN if letter in LETTERS["then"] else ELSE)
    x = left + column * CELL
    y = TOP + row * CELL
    return (
        f'<g{more}><rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{colour}"'
        f' stroke="#39424a"/>{_text(x + CELL // 2 - 4, y + CELL // 2 + 5, letter)}</g>'
    )


def _text(x: int, y: int, text: str, size: int = 15) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="#1d2429">{text}</text>'


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(exist_ok=True)
    for example in EXAMPLES:
        (FOLDER / f"{example.name}.svg").write_text(svg(example))


if __name__ == "__main__":
    main()
