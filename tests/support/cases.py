"""Cases of a test, of which every run takes a few."""

import pytest

from te_select import Workload


def the_others_slow(cases, first):
    """Parameters, of which only the first ones are for every run; a tuple is several."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in first else pytest.mark.slow,
        )
        for case in cases
    ]


def short_rows(inner, dtypes):
    """Rows of some elements that move in every way: any number of rows, and 7 and 65 of them."""
    shapes = (
        (["r", 1], ["r", inner], ["r", inner]),
        (["r", 1], ["r", inner], [inner]),
        (["r", inner], ["r", 1], [inner]),
        ([inner], ["r", 1], ["r", inner]),
        (["r", 1], [inner], []),
    )
    named = [Workload(*each, dtype, "multidirectional") for each in shapes for dtype in dtypes]
    return named, [w.bind({"r": rows}) for w in named for rows in (7, 65)]
