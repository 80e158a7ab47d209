"""The gate: which records are enough, and what the error names."""

from pytest import mark, raises

import te_select
from te_select import ArgumentError, TuningError, export
from te_select.backends.targets import resolve
from te_select.base import cache
from tests.support import flat, masked_rows
from tests.support.machines import on_x86_64
from tests.support.tuning import add


def test_nearest_record_is_enough_only_where_it_is_said(tmp_path):
    add(tmp_path, flat(2000))
    options = {"target": "native", "tuning_logs": tmp_path}
    for level in te_select.compile(flat(1000), **options).levels:
        add(tmp_path, flat(2000), resolve(level))
    near = te_select.compile(flat(1000), **options, require_record="near")
    assert near.origin.startswith("nearest:")
    with raises(TuningError, match=r"^no record of its own for 1 of 1 workload: cond \[1000"):
        te_select.compile(flat(1000), **options, require_record=True)


def test_kernel_from_the_cache_goes_through_the_gate():
    workload = masked_rows(3, 7)
    assert te_select.compile(workload).origin == "default"
    assert len(cache.entries()) == 1
    with raises(TuningError, match=r"te-select tune --all --target \S+ --workload"):
        te_select.compile(workload, require_record=True)
    with raises(TuningError, match="--size n=1:64"):
        te_select.compile(masked_rows("n", 7), require_record=True)


@on_x86_64
def test_record_of_one_level_of_two_is_not_enough(tmp_path):
    add(tmp_path, flat(1000), resolve("x86-64-v2"))
    given = flat(1000), "x86-64,x86-64-v2", tmp_path
    te_select.compile(*given)  # to the cache
    with raises(TuningError, match=r"no record .* on x86-64 \("):
        te_select.compile(*given, require_record=True)


def test_export_names_every_level_and_writes_nothing(tmp_path):
    add(tmp_path, flat(1000), resolve("x86-64-v3"))
    args = [flat(1000)], tmp_path / "lib.so", "x86-64-v3,x86-64-v4", tmp_path
    with raises(TuningError, match=r"no record .* for 1 of 2 .* on x86-64-v4 \(") as caught:
        export(*args, require_record=True)
    assert not (tmp_path / "lib.so").exists()
    add(tmp_path, flat(1000))
    assert "--target x86-64-v4" in str(caught.value)
    assert export(*args, require_record=True) == tmp_path / "lib.so"


@mark.parametrize(
    "given, message",
    [
        ({"require_record": "yes"}, "require_record is 'yes'; expected False, True or \"near\""),
        ({"require_record": 2}, "require_record is 2; expected"),
        ({"require_record": True, "tuning_logs": False}, "True and tuning_logs is False"),
        ({"require_record": "near", "config": {"unroll": 1}}, "'near' and config is"),
    ],
)
def test_requirement_that_means_nothing_is_refused(tmp_path, given, message):
    with raises(ArgumentError, match=message):
        te_select.compile(flat(8), **given)
    with raises(ArgumentError, match=message):
        export([flat(8)], tmp_path / "lib.so", **given)
