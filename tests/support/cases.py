"""Cases of a test, of which every run takes a few."""

import pytest


def the_others_slow(cases, first):
    """Parameters, of which only the first ones are for every run; a tuple is several."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in first else pytest.mark.slow,
        )
        for case in cases
    ]
