"""A Select in Triton, as Triton's users would write it: a flat index, cut into merged loops."""

import triton
import triton.language as tl

_BLOCKS = ((512, 4), (1024, 4), (2048, 4), (2048, 8), (4096, 8))  # elements and warps to try


@triton.autotune(  # type: ignore[untyped-decorator]  # Triton is untyped, and often missing
    configs=[triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in _BLOCKS],
    key=["count", "N1", "N2", "N3"],
)
@triton.jit  # type: ignore[untyped-decorator]
def select(  # type: ignore[no-untyped-def]  # noqa: ANN201, D103, PLR0913, PLR0917
    cond, then, else_, out, count,  # noqa: ANN001 - Triton takes annotations for its own types
    N1: tl.constexpr, N2: tl.constexpr, N3: tl.constexpr,
    C0: tl.constexpr, C1: tl.constexpr, C2: tl.constexpr, C3: tl.constexpr,
    T0: tl.constexpr, T1: tl.constexpr, T2: tl.constexpr, T3: tl.constexpr,
    E0: tl.constexpr, E1: tl.constexpr, E2: tl.constexpr, E3: tl.constexpr,
    WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    if WIDE:  # otherwise 32 bits index every element, and dividing 32 bits costs less
        block = block.to(tl.int64)
    at = block * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    i3 = at % N3
    i2 = at // N3 % N2
    i1 = at // (N3 * N2) % N1
    i0 = at // (N3 * N2 * N1)
    c = tl.load(cond + i0 * C0 + i1 * C1 + i2 * C2 + i3 * C3, inside)
    t = tl.load(then + i0 * T0 + i1 * T1 + i2 * T2 + i3 * T3, inside)
    e = tl.load(else_ + i0 * E0 + i1 * E1 + i2 * E2 + i3 * E3, inside)
    tl.store(out + at, tl.where(c != 0, t, e), inside)
