"""``TE_SELECT_BUILD``: nothing is built, and no program is started, where it forbids it."""

import json
import subprocess
import textwrap
from unittest.mock import Mock

from pytest import fail, fixture, mark, raises

import te_select
from te_select import ArgumentError, ToolchainError
from te_select.backends import c_compiler
from te_select.backends.cuda import compilers
from te_select.base import cache, variables
from te_select.compiler import build
from te_select.selecting.kernels import library
from te_select.tuning.options import open_measurer
from tests.support import masked_rows, python

FORBIDDEN = r"^TE_SELECT_BUILD is never, which forbids to build .*; expected it in the cache or"
W = masked_rows(3, 11)
CALLS = """
    import json, sys, warnings
    import numpy as np
    import te_select
    warnings.simplefilter("error")
    {before}
    cond, x = np.arange(50) % 3 == 0, np.arange(50, dtype="f4")
    rows = np.arange(24, dtype="f4").reshape(8, 3)
    try:
        for _ in range(2):
            assert (te_select.where(cond, x, -1) == np.where(cond, x, -1)).all()
            many = np.repeat(rows, 9999, 0)
            even = many[:, :1] > 9
            assert (te_select.where(even, many, -1) == np.where(even, many, -1)).all()
        said = te_select.where.explain(cond, x, -1).left
    except te_select.SelectError as error:
        said = f"{{type(error).__name__}}: {{error}}"
    stats = te_select.where.stats()
    print(json.dumps([stats.calls, stats.left, said, "tvm" in sys.modules]))
"""


@fixture
def never(monkeypatch):
    """Builds are forbidden; no program may start."""
    monkeypatch.setenv(variables.BUILD, "never")
    for name in ("run", "Popen"):
        monkeypatch.setattr(subprocess, name, lambda *a, **_: fail(f"{a} was started"))


def called(folder, value, before=""):
    """What calls of where() say in a process of its own, with a cache of these kernels."""
    code = textwrap.dedent(CALLS).format(before=before)
    return json.loads(python(code, TE_SELECT_CACHE_DIR=folder, TE_SELECT_BUILD=value))


def test_where_leaves_calls_to_numpy_and_says_so(tmp_path):
    said = "building is forbidden"
    assert called(tmp_path, "never") == [0, {said: 4}, said, False]
    assert not list(tmp_path.iterdir())


def test_where_raises_if_the_value_is_error(tmp_path):
    calls, left, said, has_tvm = called(tmp_path, "error")
    assert said.startswith("ToolchainError: TE_SELECT_BUILD is error, which forbids to build")
    assert (calls, left, has_tvm) == (0, {}, False)


@mark.parametrize("value", ["never", "error"])
def test_cache_serves_and_rows_without_a_kernel_go_row_by_row(family, tmp_path, value):
    part = library.family.part_of_width(4)
    image = library._built("a part", [part])
    (tmp_path / library.entry(part)).write_bytes(image)
    assert called(tmp_path, value) == [4, {}, "", False]
    assert called(family, value) == [4, {}, "", False]


@mark.parametrize("value", ["never", "error"])
def test_kernel_of_rows_that_cannot_be_had_raises_nothing(monkeypatch, value):
    """The call has begun, and goes row by row."""
    for name in ("_loaded", "_failed", "_forbidden"):
        monkeypatch.setattr(library, name, set())
    monkeypatch.setattr(library, "_from_cache", Mock(side_effect=ToolchainError("none")))
    monkeypatch.setenv(variables.BUILD, value)
    place = next(iter(library.family.parts()["w4_rows05"].values()))
    number = library.family.PLACES.index(place)
    if value == "error":
        with raises(ToolchainError, match="none"):
            library.fetch("w4_rows05")
    assert library.fetch_missing_kernel(number) is False
    assert (library._failed, library._forbidden) == (set(), {"w4_rows05"})


@mark.parametrize("value", ["yes", "Never", "0"])
def test_wrong_value_is_an_error_where_a_build_would_begin(tmp_path, value, monkeypatch):
    said = called(tmp_path, value)[2]
    assert said.startswith(f"ArgumentError: TE_SELECT_BUILD is {value!r}; expected never, error")
    monkeypatch.setenv(variables.BUILD, value)
    with raises(ArgumentError, match=f"TE_SELECT_BUILD is {value!r}; expected never"):
        te_select.compile(masked_rows(5, 13))


def test_compile_takes_the_cache_and_builds_nothing(monkeypatch):
    te_select.compile(W)
    monkeypatch.setenv(variables.BUILD, "never")
    assert te_select.compile(W).path.parent == cache.folder()
    monkeypatch.setattr("te_select.compiler.build.kernel", lambda *_, **__: fail("it was built"))
    with raises(ToolchainError, match=FORBIDDEN):
        te_select.compile(masked_rows(3, 12))


@mark.parametrize(
    "begin",
    [
        lambda path: te_select.export([W], path / "lib.so"),
        lambda path: te_select.tune(W, tuning_logs=path / "logs", trials=1),
        lambda path: te_select.where.build(str(path / "kernels.so")),
        lambda _: library.whole_file(),
        lambda _: build.kernel(W),
        lambda _: open_measurer(),
        lambda _: compilers._compiled("", ("sm_90",), None),
        lambda path: c_compiler.compile_library([], path / "lib.so"),
    ],
)
def test_every_build_is_refused_when_it_would_begin(never, tmp_path, begin):
    with raises(ToolchainError, match=FORBIDDEN):
        begin(tmp_path)
    assert not list(tmp_path.rglob("*.so"))
