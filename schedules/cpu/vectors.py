"""Arrays at any address and vectors of them, in TIR: what TVM 0.27 has no word for stands here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

from tvm import ir, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

Expr: TypeAlias = Any  # of TIR; TVM has no one class for them

ZERO = tirx.IntImm("int64", 0)
_BYTES = ir.PointerType(ir.PrimType("uint8"))
_UNKNOWN = "te_select_unknown"
_PREFETCH = "te_select_prefetch"


def let(name: str, value: Expr) -> Expr:
    """Give a value a name. It is computed here, before all stores that follow."""
    if isinstance(value, tirx.IntImm):
        return value
    return T.bind(value, var=ir.Var(name, value.ty))


def branch(
    condition: Expr, then: Callable[[], None], else_: Callable[[], None] | None = None
) -> None:
    """Write two ways of which the condition takes one, or only that one if it is known."""
    if isinstance(condition, tirx.IntImm):
        taken = then if condition.value else else_
        if taken is not None:
            taken()
        return
    with T.If(condition):
        with T.Then():
            then()
        if else_ is not None:
            with T.Else():
                else_()


@dataclass(frozen=True)
class Array:
    """Elements of ``width`` bytes at any address.

    They are declared as bytes, because TVM takes every vector for as aligned as its elements. Their
    pointer is bound to a name, because TVM tells LLVM that other pointers do not overlap; here out
    may be one of the inputs.
    """

    name: str
    width: int
    bytes: Expr

    @classmethod
    def at(cls, name: str, width: int, address: Expr) -> Array:
        """Elements from a pointer on."""
        pointer = let(f"{name}_data", tirx.reinterpret(_BYTES, address))
        found = T.decl_buffer((width,), "uint8", data=pointer, align=1, layout=None)
        IRBuilder.name(name, found)
        return cls(name, width, found)

    def on_stack(self, count: int) -> Array:
        """Room for elements of the same kind."""
        room = stack_buffer(count * self.width, "uint8")
        return Array.at(self.name, self.width, tirx.address_of(room[0]))

    def address(self, index: Expr = 0) -> Expr:
        """A pointer to an element."""
        return tirx.address_of(self.bytes[index * self.width])

    def from_element(self, index: Expr) -> Array:
        """The elements from ``index`` on. LLVM is much faster if only numbers are added to that."""
        return Array.at(self.name, self.width, self.address(index))

    def or_else(self, condition: Expr, other: Array) -> Array:
        """Of two arrays, this one if the condition is true; TVM chooses no pointers."""
        addresses = (T.reinterpret("uint64", each.address()) for each in (self, other))
        return Array.at(self.name, self.width, T.Select(condition, *addresses))

    def is_at(self, other: Array) -> Expr:
        """Whether two arrays begin at one address."""
        ours, others = (T.reinterpret("uint64", each.address()) for each in (self, other))
        return ours == others

    def load(self, index: Expr, lanes: int) -> Expr:
        """Elements from ``index`` on: a vector, or a scalar if it is one."""
        return T.reinterpret(_type(self.width, lanes), self.bytes[self._bytes_of(index, lanes)])

    def store(self, index: Expr, value: Expr, lanes: int) -> None:
        """Write elements from ``index`` on."""
        value = T.reinterpret(_type(1, lanes * self.width), value)
        T.buffer_store(self.bytes, value, [self._bytes_of(index, lanes)])

    def store_past_cache(self, index: Expr, value: Expr, lanes: int) -> None:
        """Write elements past the cache, to an address that is a multiple of their bytes."""
        size = lanes * self.width
        value = T.reinterpret(_type(1, size), value)
        T.evaluate(T.call_extern("void", _past_cache(size), self.address(index), value))

    def prefetch(self, index: Expr) -> None:
        """Ask for the line of an element, which is read soon; any address may be asked for."""
        T.evaluate(T.call_extern("void", _PREFETCH, self.address(index)))

    def _bytes_of(self, index: Expr, lanes: int) -> Expr:
        size = lanes * self.width
        first = index * self.width
        return T.ramp(first, 1, size) if size > 1 else first  # a ramp has several lanes


def stack_buffer(count: int, dtype: str) -> Expr:
    """A buffer on the stack, or in a register; TVM would take it from the heap."""
    return T.alloc_buffer((count,), dtype, annotations={"disable_lower_builtin": True}, layout=None)


def repeated(value: Expr, lanes: int) -> Expr:
    """A vector of copies of a scalar, or the scalar if it is one."""
    return T.broadcast(value, lanes) if lanes > 1 else value


def is_true(cond: Expr, lanes: int) -> Expr:
    """A mask: which bytes are not zero. TVM cannot give a name to it."""
    return cond != repeated(T.uint8(0), lanes)


def choose(cond: Expr, then: Expr, else_: Expr, lanes: int) -> Expr:
    """The lanes of ``then`` if the bytes of ``cond`` are not zero, else those of ``else_``."""
    return T.Select(is_true(cond, lanes), then, else_)


def any_and_all(conds: Sequence[Expr], lanes: int, reduces: bool) -> tuple[Expr, Expr]:
    """Whether some byte of vectors is not zero, and whether none is zero.

    By the largest and the smallest byte if ``reduces``, else by the bits of masks. TVM makes no
    integer of these bits.
    """
    largest, smallest = let("largest", reduce(T.max, conds)), let("smallest", reduce(T.min, conds))
    if reduces:
        return (
            _reduced("uint8", "umax", largest) != T.uint8(0),
            _reduced("uint8", "umin", smallest) != T.uint8(0),
        )
    return (
        _reduced("bool", "or", is_true(largest, lanes)),
        _reduced("bool", "and", is_true(smallest, lanes)),
    )


def unknown(value: Expr) -> Expr:
    """The same number, but LLVM knows nothing of it."""
    return T.call_extern("int64", _UNKNOWN, value)


def imported_text(vector_bytes: int | None) -> str:
    """LLVM IR of what TIR has no word for: `unknown`, and those of `Array` that go by the cache.

    TVM finds no declaration of ``llvm.prefetch``, whose type is that of a pointer.
    """
    text = (
        f"define linkonce_odr i64 @{_UNKNOWN}(i64 %value) alwaysinline {{\n"
        '  %same = call i64 asm "", "=r,0"(i64 %value) nounwind willreturn memory(none)\n'
        "  ret i64 %same\n}\n"
    )
    if vector_bytes is None:
        return text
    vector = f"<{vector_bytes} x i8>"
    return (
        f"{text}"
        f"define linkonce_odr void @{_past_cache(vector_bytes)}(ptr %to, {vector} %value) "
        "alwaysinline nounwind {\n"
        f"  store {vector} %value, ptr %to, align {vector_bytes}, !nontemporal !0\n"
        "  ret void\n}\n!0 = !{i32 1}\n"
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"
        f"define linkonce_odr void @{_PREFETCH}(ptr %line) alwaysinline nounwind {{\n"
        "  call void @llvm.prefetch.p0(ptr %line, i32 0, i32 3, i32 1)\n  ret void\n}\n"
    )


def _past_cache(size: int) -> str:
    return f"te_select_store_past_cache_{size}"


def _reduced(dtype: str, which: str, vector: Expr) -> Expr:
    return T.call_llvm_pure_intrin(dtype, f"llvm.vector.reduce.{which}", vector)


def _type(width: int, lanes: int) -> str:
    return f"uint{8 * width}x{lanes}" if lanes > 1 else f"uint{8 * width}"
