"""What differs from one instruction set to another: the one table of everything that is for CPUs.

Spans are LLVM IR of portable vector types, so the same text serves all of them. What differs is how
wide a vector is best, what stores past the cache and walks backwards are worth, how a block of cond
is tested, and which features of a CPU a library must ask for. An instruction set without a row here
gets a leaf of plain TIR, which asks nothing of LLVM but that it knows the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tvm.target import Target, codegen

from te_select.schedules.cpu.config import PLAIN, SPAN


@dataclass(frozen=True, eq=False)
class Isa:
    """One instruction set.

    Parameters
    ----------
    name
        As targets name it.
    triple
        Of LLVM and of C compilers; its first part is what ``uname -m`` says.
    cpu
        LLVM's name of the CPU that has what every CPU of it has.
    attributes, abi
        What LLVM must be told beside the triple and the CPU, as ``mattr`` and ``mabi``.
    features
        Features that code generation may use for a Select, by LLVM's names, as Linux spells them in
        ``/proc/cpuinfo``. Others are left out on purpose: a virtual machine often hides them, and a
        library that never uses them must load there.
    switched_off
        Features that LLVM must not use, by its names.
    registers
        The widest vector registers that byte-wise selection can use, in bytes, widest first, each
        with the features that they take.
    leaves
        By the bytes of a register: bytes of a vector, and vectors in flight.
    most_bytes
        Bytes in flight of cond, then and else together for which there are registers; fewer vectors
        are in flight where it would be more.
    streams
        Whether stores past the cache may pay.
    walks_backwards
        Whether walking backwards may pay where out lies just ahead of an input.
    reduces
        Whether a block of cond is tested by the largest and the smallest of its bytes. Otherwise by
        the bits of its mask.
    leaf
        The default of the knob ``leaf``.
    """

    name: str
    triple: str
    cpu: str
    attributes: tuple[str, ...] = ()
    abi: str = ""
    features: Mapping[str, str] = field(default_factory=dict)
    switched_off: tuple[str, ...] = ()
    registers: tuple[tuple[frozenset[str], int], ...] = ((frozenset(), 16),)
    leaves: Mapping[int, tuple[int, int]] = field(default_factory=lambda: {16: (16, 4)})
    most_bytes: int = 1 << 16
    streams: bool = False
    walks_backwards: bool = False
    reduces: bool = False
    leaf: int = PLAIN

    @property
    def machine(self) -> str:
        """What ``uname -m`` says."""
        return self.triple.partition("-")[0]

    def register_bytes(self, features: frozenset[str]) -> int:
        """Bytes of the widest registers of a CPU with these features, by LLVM's names."""
        return next(size for needed, size in self.registers if needed <= features)

    def vectors(self, register_bytes: int, width: int) -> tuple[int, int]:
        """Bytes of a vector, and vectors in flight, for elements of ``width`` bytes."""
        vector_bytes, unroll = self.leaves[register_bytes]
        while unroll > 1 and unroll * vector_bytes * (2 + 1 / width) > self.most_bytes:
            unroll //= 2
        return vector_bytes, unroll


X86_64 = Isa(
    name="x86-64",
    triple="x86_64-linux-gnu",
    cpu="x86-64",
    features={
        "sse3": "pni",
        "ssse3": "ssse3",
        "sse4.1": "sse4_1",
        "sse4.2": "sse4_2",
        "popcnt": "popcnt",
        "avx": "avx",
        "avx2": "avx2",
        "bmi": "bmi1",
        "bmi2": "bmi2",
        "fma": "fma",
        "f16c": "f16c",
        "lzcnt": "abm",
        "movbe": "movbe",
        "avx512f": "avx512f",
        "avx512bw": "avx512bw",
        "avx512cd": "avx512cd",
        "avx512dq": "avx512dq",
        "avx512vl": "avx512vl",
        "avx512vbmi": "avx512vbmi",
        "avx512vbmi2": "avx512_vbmi2",
        "avx512vpopcntdq": "avx512_vpopcntdq",
        "avx512bitalg": "avx512_bitalg",
        "avx512fp16": "avx512_fp16",  # LLVM moves single halves by it
        "gfni": "gfni",
        "sse4a": "sse4a",
        "xop": "xop",
        "fma4": "fma4",
        "tbm": "tbm",
    },
    registers=(
        (frozenset({"avx512bw", "avx512vl"}), 64),
        (frozenset({"avx2"}), 32),
        (frozenset(), 16),
    ),
    # On AVX2 two registers a vector: 1.03 times as fast, as lines past the cache are stored whole.
    # Twice as many in flight were no faster (0.996 over the suite), and twice the code.
    leaves={64: (64, 4), 32: (64, 4), 16: (16, 4)},
    # LLVM would use them in any code, and nothing tells here whether a CPU has them. Features that
    # are in neither list do what selection does not: multiply, encrypt, convert.
    switched_off=("egpr", "ndd", "nf", "ccmp", "cf", "zu", "ppx", "push2pop2", "avx10.2", "movrs"),
    streams=True,
    walks_backwards=True,
    leaf=SPAN,
)

AARCH64 = Isa(
    name="aarch64",
    triple="aarch64-linux-gnu",
    cpu="generic",
    features={
        "neon": "asimd",
        "fp-armv8": "fp",
        "lse": "atomics",
        "crc": "crc32",
        "rdm": "asimdrdm",
        "fullfp16": "asimdhp",
        "dotprod": "asimddp",
        "rcpc": "lrcpc",
        "sha3": "sha3",
        "i8mm": "i8mm",
        "bf16": "bf16",
        "cssc": "cssc",
        "mops": "mops",
    },
    # LLVM would take them for constants only, and the library would die on a CPU without them.
    switched_off=("sve", "sme"),
    # Four registers a vector: 99 instructions in the place of 172 for 64 floats.
    leaves={16: (64, 4)},
    most_bytes=608,  # bytes and halves in flight by fours were put on the stack, floats were not
    # Cores see by themselves that whole lines are written, and STNP is a hint: no stores past the
    # cache. No sign of loads that wait for stores of other pages was seen: no walk backwards.
    reduces=True,  # on Neoverse N1 115 instructions in the place of 141
    leaf=SPAN,
)

RISCV64 = Isa(
    name="riscv64",
    triple="riscv64-linux-gnu",
    cpu="generic-rv64",
    attributes=("+m", "+a", "+f", "+d", "+c"),
    abi="lp64d",
)

ISAS = {isa.name: isa for isa in (X86_64, AARCH64, RISCV64)}
"""By the names that targets have for them; the first is that of a target without a triple."""


def of(target: Target) -> Isa:
    """The instruction set of a TVM target of kind llvm."""
    machine = str(target.attrs.get("mtriple", X86_64.triple)).partition("-")[0]
    return next(isa for isa in ISAS.values() if isa.machine == machine)


def features_of(target: Target) -> frozenset[str]:
    """The features of a TVM target of kind llvm, by LLVM's names."""
    return frozenset(map(str, codegen.llvm_get_cpu_features(target)))


def register_bytes(target: Target) -> int:
    """Bytes of the widest vector register that byte-wise selection can use on the target."""
    return of(target).register_bytes(features_of(target))
