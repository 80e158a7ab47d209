"""The levels of x86-64, from which targets, texts, help and checks are made, and all triples.

If a level names a new feature, add its CPUID bit to ``runtime/c/cpu/cpu_features.c``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

# On Emerald Rapids, rows of 12 bytes that share vectors ran at 5x; rows of 128 bytes gained nothing
# (docs/measurements.md, "Rows").
SHORT_ROW_BYTES = 128


@dataclass(frozen=True)
class Level:
    """CPUs of one instruction set with some features, and the vectors that suit them.

    Parameters
    ----------
    name
        As targets name it, and LLVM where it knows it.
    vector_bytes, unroll
        The defaults of these knobs: bytes per vector, and vectors per iteration.
    features
        Features of this level that lower ones lack, and that the code of a Select may use: LLVM's
        name, and the name in ``/proc/cpuinfo``.
    needs
        LLVM's names of features, of this level or a lower one, by which the level of a CPU is
        known.
    short_row_bytes
        Rows of fewer bytes share vectors by default.
    reloads
        Whether spans load a block of cond again, vector by vector, after its test.
    """

    name: str
    vector_bytes: int
    unroll: int
    features: Mapping[str, str] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    short_row_bytes: int = SHORT_ROW_BYTES
    reloads: bool = False


def spelt(names: str) -> dict[str, str]:
    """LLVM's names of features, each with that in ``/proc/cpuinfo``, as in ``"avx bmi=bmi1"``."""
    pairs = (name.partition("=") for name in names.split())
    return {llvm: other or llvm for llvm, _, other in pairs}


# Lowest first. A library may have several.
LEVELS = (
    Level("x86-64", vector_bytes=16, unroll=4),
    Level(
        "x86-64-v2",
        vector_bytes=16,
        unroll=4,
        features=spelt("sse3=pni ssse3 sse4.1=sse4_1 sse4.2=sse4_2 popcnt"),
        needs=frozenset({"sse4.2"}),
    ),
    # Two registers a vector: 1.03x the speed of one, because whole lines are stored past the
    # cache. Eight an iteration instead of four were no faster (0.996), and twice the code. Both
    # figures are of the suite on Emerald Rapids.
    Level(
        "x86-64-v3",
        vector_bytes=64,
        unroll=4,
        features=spelt("avx avx2 bmi=bmi1 bmi2 fma f16c lzcnt=abm movbe"),
        needs=frozenset({"avx2"}),
    ),
    Level(
        "x86-64-v4",
        vector_bytes=64,
        unroll=4,
        features=spelt("avx512f avx512bw avx512cd avx512dq avx512vl"),
        needs=frozenset({"avx512bw", "avx512vl"}),
    ),
)
NAMES = tuple(level.name for level in LEVELS)
# The target of a library for every CPU that has more than the baseline.
ABOVE_BASELINE = ",".join(NAMES[1:])
# What LLVM and C compilers call the instruction sets, by their names in targets.
TRIPLES = {name: f"{name.replace('-', '_')}-linux-gnu" for name in ("x86-64", "aarch64", "riscv64")}


def machine_of(triple: str) -> str:
    """What ``uname -m`` says where code for a triple runs."""
    return triple.partition("-")[0]
