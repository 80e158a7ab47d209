"""Writing LLVM IR text: names, blocks, and loops with one induction variable."""

from __future__ import annotations

from collections.abc import Callable


class IRWriter:
    """Writes the blocks of one function, in order.

    Values and labels are strings; whatever yields a value returns its name.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0
        self._block = ""

    def line(self, text: str) -> None:
        """Write an instruction without a value."""
        self.lines.append(f"  {text}")

    def emit(self, instruction: str) -> str:
        """Write an instruction; the value is its result."""
        name = self._name()
        self.line(f"{name} = {instruction}")
        return name

    def label(self) -> str:
        """Make a label for a block that is not yet written."""
        self._count += 1
        return f"b{self._count}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self._block = label

    def jump(self, label: str) -> None:
        """End the block by going to another."""
        self.line(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """End the block by going to one of two others."""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def loop(self, start: str, stop: str, step: int, body: Callable[[str], None]) -> str:
        """Run ``body(i)`` while ``i + step <= stop``; the value is the first i left."""
        before, loop, after = self._block, self.label(), self.label()
        first = self.emit(f"add i64 {start}, {step}")
        self.branch(self.emit(f"icmp ule i64 {first}, {stop}"), loop, after)
        self.start(loop)
        i, following = self._name(), self._name()
        head = len(self.lines)
        body(i)
        phi = f"  {i} = phi i64 [ {start}, %{before} ], [ {following}, %{self._block} ]"
        self.lines.insert(head, phi)
        last = self._block
        self.line(f"{following} = add i64 {i}, {step}")
        end = self.emit(f"add i64 {following}, {step}")
        self.branch(self.emit(f"icmp ule i64 {end}, {stop}"), loop, after)
        self.start(after)
        return self.emit(f"phi i64 [ {start}, %{before} ], [ {following}, %{last} ]")

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"
