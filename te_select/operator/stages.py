"""Stages: what is done to a block of an operand before a kernel of the family selects it.

A kernel selects elements of one type by booleans in bytes. A stage makes these, in the first-level
cache, of what an operand holds: elements of another type, or booleans that are stored as bits.

A stage is a loop of ``n`` elements (`te_select.operator.stage_definition`), which LLVM vectorizes.
Its C function has the parameters of ``te_select_where_run``: data of the source and of what is
made, n, and flags.
"""

import functools
from dataclasses import dataclass

# NumPy's types of numbers, in the order of the C half (``te_select_kind_of``).
NUMBERS = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
BITS = "bits"  # booleans of Arrow, eight in a byte, the lowest bit first
SOURCES = (*NUMBERS, BITS)
AS_IS = -1  # the C half's number of what is not converted
# A flag of stages from float16.
QUIET = 8  # a signalling NaN of float16 becomes a quiet one, as the running NumPy has it


@dataclass(frozen=True)
class Stage:
    """A stage.

    Parameters
    ----------
    source
        One of `SOURCES`.
    target
        One of `NUMBERS`.
    """

    source: str
    target: str

    @property
    def place(self) -> str:
        """The place in ``te_select_where_stages``."""
        return f"of[{SOURCES.index(self.source)}][{NUMBERS.index(self.target)}]"

    @property
    def name(self) -> str:
        """The stage in words."""
        return f"{self.source} to {self.target}"


@functools.cache
def stages() -> tuple[Stage, ...]:
    """All stages: NumPy's promotions to another type, and from all others to boolean."""
    import numpy as np  # noqa: PLC0415 - kept off --help

    promoted = (
        Stage(one, found)
        for one in NUMBERS
        for other in NUMBERS
        if (found := np.promote_types(one, other).name) != one
    )
    to_bool = (Stage(source, "bool") for source in SOURCES if source != "bool")
    return tuple(dict.fromkeys((*promoted, *to_bool)))
