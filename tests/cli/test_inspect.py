"""``te-select inspect``: what it shows of a library and of a workload."""

from pytest import fixture, mark

import te_select
from te_select.backends.targets import resolve
from te_select.schedules.cpu import isa
from tests.support import cuda_standin, flat, masked_rows
from tests.support.cli import FLAGS, refused, run, run_json
from tests.support.machines import on_x86_64

STREAMS = isa.of(resolve("native").tvm).streams


def test_inspect_shows_what_a_library_is(one):
    result = run("inspect", one)
    assert result.exit_code == 0
    for shown in ("4:ct x 5:t", "168", "origin", "default", "loads_here", "tvm"):
        assert shown in result.stdout


def test_inspect_says_why_a_library_does_not_load(one, tmp_path):
    path = tmp_path / "mask.so"
    path.write_bytes(one.read_bytes() + b"x")
    path.with_suffix(".json").write_bytes(one.with_suffix(".json").read_bytes())
    assert "SHA-256" in run_json("inspect", path)["loads_here"]
    for words in ((), ("--json",), ("--load",), ("--source", "te")):
        assert run("inspect", path, *words).exit_code == 1


def test_inspect_for_cuda_says_that_there_is_no_driver(tmp_path):
    path = cuda_standin.build([flat(4)], tmp_path / "mask.so")
    with cuda_standin.fake_driver():
        for words in ((), ("--load",)):
            assert run_json("inspect", path, *words)["loads_here"].startswith(
                "yes, but calls fail: the NVIDIA driver does not start"
            )
    with cuda_standin.fake_driver(90):
        assert run_json("inspect", path)["loads_here"] == "yes"


@mark.parametrize(
    "level, shown",
    [("te", "T."), ("tir", "T."), ("scheduled", "T."), ("llvm", "define"), ("asm", "ret")],
)
def test_inspect_shows_every_source(level, shown, one):
    from_library = run("inspect", one, "--source", level)
    assert shown in from_library.stdout
    from_flags = run_json("inspect", *FLAGS, "--source", level)
    assert from_flags["kernels"][0]["source"].strip() == from_library.stdout.strip()


def test_inspect_of_a_manifest_names_the_library(one):
    assert f"expected {one}" in refused("inspect", one.with_suffix(".json"))


def test_inspect_wants_one_kernel_for_a_source(two):
    said = refused("inspect", two, "--source", "te")
    assert "expected --kernel with one of select_int16" in said


def here(*words):
    (kernel,) = run_json("inspect", *words)["kernels"]
    return kernel["here"]


@fixture
def profile(monkeypatch):
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", "1")
    said = "stream_per_thread=0,stream_per_l3=1000000,bytes_per_thread=65536,skip=2"
    monkeypatch.setenv("TE_SELECT_PROFILE", said)


@mark.usefixtures("profile")
def test_inspect_says_why_a_kernel_is_as_fast_as_it_is():
    plain = ["--cond", "262144", "--then", "262144", "--else", "262144"]
    assert here(*plain) == {
        "threads": 1,
        "stores_past_the_cache": STREAMS,
        "looks_at_cond": True,
        "leaf": ["plain run"],
    }
    shown = run("inspect", *plain).stdout
    assert f"here            threads=1, stores_past_the_cache={STREAMS}, looks_at_cond=T" in shown
    assert "bytes_moved     3407872" in shown
    short = here("--cond", "9000,3", "--then", "9000,3", "--else", "9000,1")
    assert short["leaf"] == ["short rows"]
    assert (short["stores_past_the_cache"], short["looks_at_cond"]) == (False, False)
    named = here("--cond", "n,1", "--then", "n,c", "--else", "n,c")
    assert named == {"leaf": ["rows of named length", "plain run"]}


def test_inspect_asks_a_library_that_may_be_loaded(one):
    assert here(one, "--load")["threads"] == 1
    assert run_json("inspect", one, "--load")["in_effect"]["threads"]
    assert "--load has no meaning beside" in run("inspect", *FLAGS, "--load").stderr


@on_x86_64
def test_source_shown_is_that_of_the_level_that_would_run_here(tmp_path, monkeypatch):
    path = te_select.export([masked_rows(4, 64)], tmp_path / "l.so", "x86-64-v2,x86-64-v3")
    source = ("inspect", path, "--source", "asm")
    low, best = (run(*source, "--level", f"x86-64-{each}").stdout for each in ("v2", "v3"))
    assert low != best
    monkeypatch.setenv("TE_SELECT_LEVEL", "x86-64-v2")
    assert run(*source).stdout == low
