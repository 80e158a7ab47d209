"""Cases of a test, of which every run takes a few."""

from collections.abc import Container, Iterable
from typing import Any

import pytest


def the_others_slow(cases: Iterable[Any], first: Container[Any]) -> list[Any]:
    """Parameters, of which only the first ones are for every run; a tuple is several."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in first else pytest.mark.slow,
        )
        for case in cases
    ]
