"""Stages: what is done to a block of an operand before a kernel of the family selects it.

A kernel selects elements of one type by booleans in bytes. A stage makes these, in the first-level
cache, of what an operand holds: elements of another type, or booleans that are stored as bits.

A stage is a loop of ``n`` elements (`te_select.operator.stage_definition`), which LLVM vectorizes.
Its C function has the parameters of ``te_select_where_run``: data of the sources and of what is
made, n, and flags. A stage that compares has two sources of one type.
"""

import functools
from dataclasses import dataclass

# NumPy's types of numbers, in the order of the C half (``te_select_kind_of``).
NUMBERS = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
# What is asked of elements, in the order of the C half, and what is made of booleans.
STEPS = ("and", "or", "not")
RELATIONS = ("less", "less_equal", "equal", "is_finite", *STEPS)
OF_ONE = ("is_finite", "not")  # those with one source
BITS = "bits"  # booleans of Arrow, eight in a byte, the lowest bit first
SOURCES = (*NUMBERS, BITS)
AS_IS = -1  # the C half's number of what is not converted
# Those whose conversion may raise the flag of an invalid operation, of which NumPy warns.
SIGNALLING = ("float32", "complex64")
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
        One of `NUMBERS`; ``"bool"`` of a stage that compares.
    relation
        One of `RELATIONS` if it compares; ``"to"`` if it converts.
    """

    source: str
    target: str
    relation: str = "to"

    @property
    def place(self) -> str:
        """The place in ``te_select_where_stages``, or in ``te_select_where_comparisons``."""
        source = SOURCES.index(self.source)
        if self.compares:
            return f"comparisons->of[{RELATIONS.index(self.relation)}][{source}]"
        return f"stages->of[{source}][{NUMBERS.index(self.target)}]"

    @property
    def name(self) -> str:
        """The stage in words."""
        words = (self.source, self.relation) + (() if self.compares else (self.target,))
        return " ".join(words)

    @property
    def compares(self) -> bool:
        """Whether it compares."""
        return self.relation != "to"

    @property
    def sources(self) -> int:
        """How many sources it has."""
        return 2 if self.compares and self.relation not in OF_ONE else 1


@functools.cache
def stages() -> tuple[Stage, ...]:
    """All stages: NumPy's promotions to another type, from all others to boolean, comparisons."""
    import numpy as np  # noqa: PLC0415 - kept off --help

    promoted = (
        Stage(one, found)
        for one in NUMBERS
        for other in NUMBERS
        if (found := np.promote_types(one, other).name) != one
    )
    to_bool = (Stage(source, "bool") for source in SOURCES if source != "bool")
    compared = (
        Stage(source, "bool", relation)
        for relation in RELATIONS
        for source in NUMBERS
        if is_defined(relation, np.dtype(source).kind)
    )
    return tuple(dict.fromkeys((*promoted, *to_bool, *compared)))


def is_defined(relation: str, kind: str) -> bool:
    """Whether there is a relation of elements of a kind of NumPy's types."""
    kinds = {"less": "biuf", "less_equal": "biuf", "equal": "biufc", "is_finite": "fc"}
    return kind in kinds.get(relation, "b")
