"""The table of instruction sets."""

import dataclasses

import pytest

from te_select.base.levels import Level
from te_select.schedules.cpu import isa

SVE = Level("aarch64:sve", 64, 4, {"sve": "sve"}, frozenset({"sve"}))


@pytest.mark.parametrize("needs", [frozenset(), frozenset({"sve2"})])
def test_level_that_any_cpu_or_none_has_is_refused(needs):
    level = dataclasses.replace(SVE, needs=needs)
    with pytest.raises(ValueError, match="expected features of its row"):
        dataclasses.replace(isa.AARCH64, levels=(*isa.AARCH64.levels, level))


def test_features_of_levels_are_asked_for():
    made = dataclasses.replace(isa.AARCH64, levels=(*isa.AARCH64.levels, SVE))
    assert made.features == isa.AARCH64.features | {"sve": "sve"}


def test_cpu_of_the_baseline_has_the_first_level():
    assert isa.X86_64.level(frozenset({"sse2", "ssse3"})).name == "x86-64"
    assert isa.X86_64.level(frozenset({"sse4.2"})).name == "x86-64-v2"
