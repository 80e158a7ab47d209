"""The table of instruction sets: everything in which one CPU target differs from another.

Spans are TIR of vectors, so the same statements serve all instruction sets. A row holds the choices
for one: the width of a vector, stores past the cache, walks backwards, the test of a block of cond,
and the features that a library may use and must ask for.

An untried instruction set gets the plainest span. LLVM only has to know the target.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from tvm.target import Target, codegen

from te_select.base.levels import LEVELS, TRIPLES, Level, machine_of, spelt


@dataclass(frozen=True, eq=False)
class Isa:
    """One instruction set.

    Parameters
    ----------
    name
        As targets name it.
    triple
        The triple that LLVM and C compilers know. Its first part is what ``uname -m`` says.
    cpu
        LLVM's name of the baseline CPU: every CPU of this instruction set runs its code.
    attributes, abi
        ``mattr`` and ``mabi`` of the TVM target.
    of_models
        Features of single CPUs, and of no level, that the code of a Select may use: LLVM's name,
        and the name in ``/proc/cpuinfo``. Other features are left out on purpose: virtual machines
        often hide them, and the code does not need them.
    switched_off
        LLVM's names of features that it must not use, unless a level has them.
    levels
        The levels of it, lowest first; at least one, which every CPU has.
    most_bytes
        Register budget in bytes for cond, then and else. The unroll factor is lowered to fit.
    streams
        Whether stores past the cache can be faster.
    walks_backwards
        Whether walking backwards can be faster if out lies just ahead of an input.
    names_cpus
        Whether targets may name LLVM's CPUs: a library can ask for all that LLVM uses on them.
    reduces
        Whether a block of cond is tested by its largest and its smallest byte, instead of by the
        bits of its mask.
    """

    name: str
    triple: str
    cpu: str
    levels: tuple[Level, ...]
    attributes: tuple[str, ...] = ()
    abi: str = ""
    of_models: Mapping[str, str] = field(default_factory=dict)
    switched_off: tuple[str, ...] = ()
    most_bytes: int = 1 << 16
    streams: bool = False
    walks_backwards: bool = False
    names_cpus: bool = True
    reduces: bool = False

    def __post_init__(self) -> None:
        known: set[str] = set()
        for level in self.levels[1:]:
            known.update(level.features)
            if not level.needs or not level.needs <= known:
                raise ValueError(
                    f"{level.name} needs {sorted(level.needs)}; expected features of its row or of "
                    "those before it, by which it is known"
                )

    @functools.cached_property
    def features(self) -> dict[str, str]:
        """Features that code may use, which a library asks of the CPU at its first use."""
        of_levels = {llvm: name for each in self.levels for llvm, name in each.features.items()}
        return of_levels | dict(self.of_models)

    @property
    def machine(self) -> str:
        """What ``uname -m`` says."""
        return machine_of(self.triple)

    def level(self, features: frozenset[str]) -> Level:
        """The best level whose registers a CPU with these features has, by LLVM's names."""
        return next(level for level in reversed(self.levels) if level.needs <= features)

    def vectors(self, level: Level, width: int) -> tuple[int, int]:
        """Bytes of a vector, and the unroll factor, for elements of ``width`` bytes."""
        vector_bytes, unroll = level.vector_bytes, level.unroll
        while unroll > 1 and unroll * vector_bytes * (2 + 1 / width) > self.most_bytes:
            unroll //= 2
        return vector_bytes, unroll


X86_64 = Isa(
    name="x86-64",
    triple=TRIPLES["x86-64"],
    cpu=LEVELS[0].name,
    levels=LEVELS,
    of_models=spelt(  # LLVM moves single halves by the one for them
        "avx512vbmi avx512vbmi2=avx512_vbmi2 avx512vpopcntdq=avx512_vpopcntdq "
        "avx512bitalg=avx512_bitalg avx512fp16=avx512_fp16 gfni sse4a xop fma4 tbm"
    ),
    # LLVM would use them in any code, and nothing tells here whether a CPU has them. Features that
    # are in neither list do what selection does not: multiply, encrypt, convert. The last one is
    # no feature: for x86-64-v4 LLVM halves the vectors of loops, and float16 took 1.9x the time
    # (Zen 5).
    switched_off=(
        *("egpr", "ndd", "nf", "ccmp", "cf", "zu", "ppx", "push2pop2", "avx10.2", "movrs"),
        "prefer-256-bit",
    ),
    streams=True,
    walks_backwards=True,
)

AARCH64 = Isa(
    name="aarch64",
    triple=TRIPLES["aarch64"],
    cpu="generic",
    # Nothing was timed; instructions were counted in the code of LLVM. With four registers a
    # vector, 64 floats take 99 instructions, with one 172.
    # Sharing vectors, calls of 64 rows with one or two row-constant operands took 0.33 to 0.97 of
    # the instructions for rows of 3 to 24 bytes. It was 0.82 to 1.10 for 32 bytes, 0.92 to 1.29
    # for 48, and 1.2 to 1.9 for most longer rows.
    levels=(Level("aarch64", vector_bytes=64, unroll=4, short_row_bytes=40),),
    of_models=spelt(
        "neon=asimd fp-armv8=fp lse=atomics crc=crc32 rdm=asimdrdm fullfp16=asimdhp "
        "dotprod=asimddp rcpc=lrcpc sha3 i8mm bf16 cssc mops"
    ),
    # LLVM would use them to make constants only, and a CPU without them could not run the library.
    switched_off=("sve", "sme"),
    # With four vectors in flight, LLVM puts some of 1-byte and 2-byte elements on the stack.
    most_bytes=608,
    # There are no stores past the cache: cores notice that whole lines are written, and STNP is
    # only a hint. There is no walk backwards: no sign was found of loads that wait for such stores.
    reduces=True,  # 115 instructions for Neoverse N1, 141 with the bits of the mask
)

RISCV64 = Isa(
    name="riscv64",
    triple=TRIPLES["riscv64"],
    cpu="generic-rv64",
    levels=(
        # Counted as for aarch64, sharing takes 1.0 to 10 times the instructions, for a few 0.7.
        Level("riscv64", vector_bytes=16, unroll=4, short_row_bytes=0),
        # Nothing was timed; instructions were counted in the code of LLVM. The loop of four vectors
        # has about 60 for 16, 32 and 64 bytes a vector, so those of 64 take the fewest a byte. Two
        # in flight take 1.05 to 1.12 times as many; four put nothing on the stack.
        # Of what RVA23 has besides, only Zba would save any, two of 62. So it is not asked for.
        Level(
            "riscv64:rva23",
            vector_bytes=64,
            unroll=4,
            features={"v": "v"},
            needs=frozenset({"v"}),
            # Counted as for aarch64: 0.41 to 1.0 for rows up to 24 bytes, 0.77 to 1.09 for 32, 0.90
            # to 1.29 for 48, 1.2 to 1.5 for 63. Rows of 63 bytes would take 14 KB of stack with
            # registers of 128 bits, and more with longer ones.
            short_row_bytes=40,
            reloads=True,  # LLVM would take half of a vector of bytes, byte by byte: 31 slides
        ),
    ),
    # Linux lets programs load from any address. LLVM would load byte by byte without the last one.
    # Vectors need no such word, and not every CPU would keep it: LLVM loads them as bytes (vle8.v).
    attributes=("+m", "+a", "+f", "+d", "+c", "+unaligned-scalar-mem"),
    abi="lp64d",
    names_cpus=False,
)

# By their names in targets. A target without a triple has the first.
ISAS = {isa.name: isa for isa in (X86_64, AARCH64, RISCV64)}


def of(target: Target) -> Isa:
    """The instruction set of a TVM target of kind llvm."""
    return next(isa for isa in ISAS.values() if isa.machine == _machine(target))


def knows(target: Target) -> bool:
    """Whether a TVM target is a CPU of one of these instruction sets."""
    machines = (isa.machine for isa in ISAS.values())
    return target.kind.name == "llvm" and _machine(target) in machines


def _machine(target: Target) -> str:
    return machine_of(str(target.attrs.get("mtriple", X86_64.triple)))


@functools.lru_cache(maxsize=8)  # LLVM takes 0.5 ms, and a search asks for each of its configs
def features_of(target: Target) -> frozenset[str]:
    """The features of a TVM target of kind llvm, by LLVM's names."""
    return frozenset(map(str, codegen.llvm_get_cpu_features(target)))


def level_of(target: Target) -> Level:
    """The best level whose registers a TVM target of kind llvm has."""
    return of(target).level(features_of(target))
