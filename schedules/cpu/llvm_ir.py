"""Writing LLVM IR text: names, blocks, loops with one induction variable, and vectors."""

from __future__ import annotations

from collections.abc import Callable


class IRWriter:
    """Writes the blocks of one function, in order.

    Values and labels are strings. A method that makes a value returns the value's name.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0
        self.block = ""

    def line(self, text: str) -> None:
        """Write an instruction without a value."""
        self.lines.append(f"  {text}")

    def emit(self, instruction: str) -> str:
        """Write an instruction, and return the name of its result."""
        name = self._name()
        self.line(f"{name} = {instruction}")
        return name

    def label(self) -> str:
        """Make a label for a block that comes later."""
        self._count += 1
        return f"b{self._count}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block by going to another."""
        self.line(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """End the block by going to one of two others."""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def loop(
        self,
        start: str,
        stop: str,
        step: int,
        body: Callable[[str], None],
        backwards: str = "false",
    ) -> str:
        """Run ``body(i)`` while ``i + step <= stop``; return the first i that is left.

        If the i1 value ``backwards`` is true, the same values of i come in the opposite order.
        """
        before, loop, after = self.block, self.label(), self.label()
        length = self.emit(f"sub i64 {stop}, {start}")
        rest = self.emit(f"urem i64 {length}, {step}")
        last = self.emit(f"sub i64 {stop}, {rest}")
        ends = self.emit(f"add i64 {start}, {last}")
        mirror = self.emit(f"sub i64 {ends}, {step}")
        first = self.emit(f"add i64 {start}, {step}")
        self.branch(self.emit(f"icmp ule i64 {first}, {stop}"), loop, after)
        self.start(loop)
        i, following = self._name(), self._name()
        head = len(self.lines)
        opposite = self.emit(f"sub i64 {mirror}, {i}")
        body(self.emit(f"select i1 {backwards}, i64 {opposite}, i64 {i}"))
        phi = f"  {i} = phi i64 [ {start}, %{before} ], [ {following}, %{self.block} ]"
        self.lines.insert(head, phi)
        last = self.block
        self.line(f"{following} = add i64 {i}, {step}")
        end = self.emit(f"add i64 {following}, {step}")
        self.branch(self.emit(f"icmp ule i64 {end}, {stop}"), loop, after)
        self.start(after)
        return self.emit(f"phi i64 [ {start}, %{before} ], [ {following}, %{last} ]")

    def pointer(self, name: str, width: int, index: str, offset: int) -> str:
        """Address of element ``index + offset`` of an array of integers of ``width`` bytes."""
        base = name if name.startswith("%") else f"%{name}"
        moved = self.emit(f"getelementptr i{8 * width}, ptr {base}, i64 {index}")
        return self.emit(f"getelementptr i{8 * width}, ptr {moved}, i64 {offset}")

    def load(self, name: str, width: int, index: str, offset: int, lanes: int) -> str:
        """Load ``lanes`` elements from ``index + offset`` on, aligned or not."""
        pointer = self.pointer(name, width, index, offset)
        return self.emit(f"load <{lanes} x i{8 * width}>, ptr {pointer}, align 1")

    def shuffle(self, a: str, b: str, width: int, lanes: int, picks: list[int]) -> str:
        """Pick lanes of two vectors. The lanes of ``b`` are numbered from ``lanes`` on."""
        vector = f"<{lanes} x i{8 * width}>"
        mask = ", ".join(f"i32 {lane}" for lane in picks)
        return self.emit(f"shufflevector {vector} {a}, {vector} {b}, <{len(picks)} x i32> <{mask}>")

    def nonzero(self, cond: str, lanes: int) -> str:
        """A mask: which bytes of a vector are not zero."""
        return self.emit(f"icmp ne <{lanes} x i8> {cond}, zeroinitializer")

    def select(self, mask: str, then: str, else_: str, width: int, lanes: int) -> str:
        """Select between vectors of integers of ``width`` bytes."""
        vector = f"<{lanes} x i{8 * width}>"
        return self.emit(f"select <{lanes} x i1> {mask}, {vector} {then}, {vector} {else_}")

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"
