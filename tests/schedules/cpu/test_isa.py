"""The table of instruction sets."""

from dataclasses import replace

from pytest import mark, raises

from te_select.base.levels import Level
from te_select.schedules.cpu import isa

SVE = Level("aarch64:sve", 64, 4, {"sve": "sve"}, frozenset({"sve"}))


@mark.parametrize("needs", [frozenset(), frozenset({"sve2"})])
def test_level_that_any_cpu_or_none_has_is_refused(needs):
    level = replace(SVE, needs=needs)
    with raises(ValueError, match="expected features of its row"):
        replace(isa.AARCH64, levels=(*isa.AARCH64.levels, level))


@mark.parametrize(
    "features, name",
    [
        ("sse2 ssse3", "x86-64"),
        ("sse4.2", "x86-64-v2"),
        ("avx512bw avx2", "x86-64-v3"),
        ("avx512bw avx512vl avx2", "x86-64-v4"),
    ],
)
def test_cpu_has_the_best_level_whose_features_are_all_there(features, name):
    assert isa.X86_64.level(frozenset(features.split())).name == name
