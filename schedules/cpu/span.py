"""The parameters of a span, which its name holds, and how its operands move.

A span selects n rows of ``inner`` elements, row-major. One letter says how an operand moves:

    f  with every element        value of row r, column x is  operand[r * inner + x]
    o  row-constant                                           operand[r]
    i  one row, broadcast over the rows                       operand[x]
    s  one value                                              operand[0]

A file for each kind of rows writes TIR: `plain_span` for rows of one element, `short_rows` for
rows that share vectors, `rows_end_to_end` for longer rows, `rows_of_named_length` for rows of a
length known only at the call. `statements` chooses the file.

- Operands may lie at any address.
- No access is masked. A tail is one whole vector that overlaps. Past the cache, and in runs of
  less than a vector, it takes vectors of half as many lanes, then of a quarter, and so on.
- Vectors are of any width that LLVM knows.
- If its flags ask for it, whole vectors are stored past the cache from the first aligned one on;
  if no vector can be aligned, stores are plain. The caller fences them.
"""

from dataclasses import dataclass

# Unroll factor of short rows, in groups of ``lanes`` rows. Two, stored one by one or in one batch,
# ran at 0.98x to 1.02x: 8192 and 65536 rows of 2 to 8 elements, arrays at 40 random places (Emerald
# Rapids). At one place alone they seemed to gain up to 1.3x.
GROUPS_OF_ROWS = 1
BATCH_BYTES = 256  # loaded before any are stored; they take 8 of the 16 registers of AVX2
# What a call tells a kernel: bits of its argument ``flags``.
STREAM = 1  # store past the cache
SMALL = 2  # few bytes are moved: use one thread, and leave the output in the caches
SKIP = 4  # look at a block of cond first, and do not read a side that it does not select
BACKWARDS = 8  # walk backwards if out lies just ahead of an input
FLAGS = {"stream": STREAM, "small": SMALL, "skip": SKIP, "backwards": BACKWARDS}
# By the traits of a span, the words of its name.
_WORDS = {
    "streaming": "_nt",
    "skipping": "_sk",
    "end_to_end": "_end_to_end",
    "forwards": "_forwards",
    "reduces": "_reduced",
    "reloads": "_reloaded",
}


@dataclass(frozen=True)
class Span:
    """One span kernel.

    Parameters
    ----------
    width
        Bytes per element of then, else and out: 1, 2, 4 or 8.
    cond, then, else_
        How the operand moves: ``"f"``, ``"o"``, ``"i"`` or ``"s"``.
    inner
        Elements per row; 1 for a plain span, 0 if the call says how many.
    vector_bytes
        Bytes per vector of elements.
    unroll
        Vectors per iteration of a plain span's main loop.
    streaming
        Whether the span can store past the cache. It does so if its flags ask for it.
    skipping
        Whether a plain span can look at the cond of a whole iteration first, and not read a side
        that is not selected. It does so if its flags ask for it.
    end_to_end
        Whether rows are walked end to end; they have at least two vectors.
    forwards
        Whether a span that is not end to end never walks backwards.
    reduces
        Whether a skipping span tests a block of cond by its largest and its smallest byte, instead
        of by the bits of its mask.
    reloads
        Whether a skipping span loads a block of cond again, vector by vector, after its test.
    """

    width: int
    cond: str
    then: str
    else_: str
    inner: int
    vector_bytes: int
    unroll: int
    streaming: bool
    skipping: bool
    end_to_end: bool = False
    forwards: bool = False
    reduces: bool = False
    reloads: bool = False

    @property
    def lanes(self) -> int:
        """Elements per vector."""
        return self.vector_bytes // self.width

    @property
    def groups_per_iteration(self) -> int:
        """Groups of `inner` vectors that an iteration of the main loop takes."""
        return self.unroll if self.inner == 1 else GROUPS_OF_ROWS

    @property
    def groups_per_batch(self) -> int:
        """Of these groups, those that are loaded before any is stored."""
        return max(1, BATCH_BYTES // (self.vector_bytes * self.inner))

    @property
    def kind(self) -> str:
        """Which rows it walks; `statements` says which file writes it."""
        if self.end_to_end:
            return "rows end to end"
        return {0: "rows of named length", 1: "plain run"}.get(self.inner, "short rows")

    @property
    def symbol(self) -> str:
        """The function's name. It holds every parameter: equal names must mean equal code."""
        moves = self.cond + self.then + self.else_
        flags = "".join(word for flag, word in _WORDS.items() if getattr(self, flag))
        return (
            f"te_select_span_w{self.width}_{moves}_i{self.inner}"
            f"_v{self.vector_bytes}_u{self.unroll}{flags}"
        )
