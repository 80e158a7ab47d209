"""Knobs that a caller sets by hand."""

from pytest import fixture, mark, raises

import te_select
from te_select import ArgumentError, Workload, export
from tests.support.cli import refused, run_json
from tests.support.libraries import beside
from tests.support.machines import on_x86_64

W = Workload((1, 300), (4, 300), ())
FLAGS = ("compile", "--cond", "1,300", "--then", "4,300", "--else", "")


@fixture(scope="module")
def kernel():
    return te_select.compile(W, config={"piece": 7, "bytes_per_thread": 0})


def test_knob_is_taken_and_the_others_stay_as_they_are(kernel):
    default = te_select.compile(W, tuning_logs=False).config
    assert kernel.config == {**default, "piece": 7, "bytes_per_thread": 0}
    assert kernel.origin == "by hand"


def test_manifest_says_what_was_set(kernel, tmp_path):
    path = kernel.export(tmp_path / "hand.so")
    record = beside(path)["kernels"][0]
    assert record["origin"] == "by hand"
    assert record["why"].startswith("piece=7, bytes_per_thread=0; the other knobs")
    assert te_select.load(path).config == kernel.config


@mark.parametrize(
    "config, said",
    [
        ({"peice": 7}, "'peice' is no knob; expected one of vector_bytes, unroll, rows, piece"),
        ({"piece": 0}, "piece=0 cannot be followed: piece must be positive"),
        ({"piece": True}, "piece=True cannot be followed"),
        ({"rows": True}, None),
        ({"vector_bytes": 48}, "vector_bytes must be 16, 32 or 64"),
        ({"unroll": True}, "unroll must be"),
        ({"unroll": 4.0}, "unroll must be"),
        ({3: 4}, "3 is no knob"),
        ("piece=7", "expected a mapping"),
    ],
)
def test_config_that_cannot_be_followed_is_refused(config, said):
    wide = Workload((1, 3000), (4, 3000), ())
    with raises(ArgumentError, match=said or "rows needs an innermost loop"):
        te_select.compile(wide, config=config)


def test_config_beside_records_is_refused(tmp_path):
    with raises(ArgumentError, match="a config by hand uses no records"):
        te_select.compile(W, tuning_logs=tmp_path, config={"piece": 7})
    with raises(ArgumentError, match="a config by hand uses no records"):
        export([W], tmp_path / "x.so", tuning_logs=tmp_path, config={"piece": 7})


@on_x86_64
def test_every_level_has_the_knob(tmp_path):
    path = export([W], tmp_path / "two.so", target="x86-64-v2,x86-64-v3", config={"unroll": 2})
    record = beside(path)["kernels"][0]
    assert record["config"]["unroll"] == record["levels"]["x86-64-v2"]["config"]["unroll"] == 2


def test_command_line_sets_knobs(tmp_path):
    path = tmp_path / "hand.so"
    found = run_json(*FLAGS, "-o", path, "--config", "piece=64", "--config", "rows=false")
    assert found["kernels"][0]["config"]["piece"] == 64
    shown = run_json("inspect", *FLAGS[1:], "--config", "unroll=1")
    assert shown["kernels"][0]["config"]["unroll"] == 1


@mark.parametrize(
    "given, said",
    [
        (["piece=x"], "expected, for example, piece=4096"),
        (["piece=7", "piece=8"], "is given twice"),
        (["piece=-1"], "piece must be positive"),
        (["colour=1"], "expected one of vector_bytes"),
    ],
)
def test_bad_knobs_are_bad_usage(tmp_path, given, said):
    flags = [word for text in given for word in ("--config", text)]
    assert said in refused(*FLAGS, "-o", tmp_path / "x.so", *flags)
    assert not list(tmp_path.iterdir())
