"""A terminal shows that kernels are being built, while they are."""

import contextlib
import io
import sys

import numpy as np
from pytest import fixture, mark, raises

import te_select
from te_select.cli.verbs import app
from te_select.errors import ToolchainError, notices
from te_select.selecting.kernels import library
from tests.support import flat


class Terminal(io.StringIO):
    def isatty(self):
        return True


@fixture(autouse=True)
def heard(monkeypatch):
    monkeypatch.setattr("te_select.errors.notices._silent", False)


def test_line_is_shown_during_the_work_and_removed_after_it(monkeypatch):
    for error in (None, KeyError):
        monkeypatch.setattr("sys.stderr", Terminal())
        with raises(error) if error else contextlib.nullcontext(), notices.shown("working"):
            assert sys.stderr.getvalue() == "working"
            if error:
                raise error
        assert sys.stderr.getvalue() == "working\r       \r"


@mark.parametrize("origin", ["reasoned: mesh", "measured: znver5"])
def test_terminal_is_told_to_measure_a_reasoned_profile(origin, monkeypatch):
    from te_select.runtime.call.cpu.profile import ADVICE, Profile

    found = Profile({}, origin, {}, "", "", False, {})
    monkeypatch.setattr("te_select.backends.cpu.environment.profile_here", lambda: found)
    monkeypatch.setattr("te_select.selecting.kernels.library._build_here", lambda _parts: b"image")
    monkeypatch.setattr("sys.stderr", Terminal())
    notices._advise.cache_clear()
    for _ in range(2):  # and once in a process
        assert library._built("all kernels", ["w4"]) == b"image"
    assert sys.stderr.getvalue().count(ADVICE) == origin.startswith("reasoned")


@mark.parametrize("stream", [None, io.StringIO()])
def test_what_is_no_terminal_gets_nothing(stream, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream)
    with notices.shown("working"):
        pass
    assert stream is None or stream.getvalue() == ""


def test_verbs_of_the_command_line_have_progress_of_their_own(monkeypatch):
    with raises(SystemExit):
        app(["--version"])
    monkeypatch.setattr("sys.stderr", Terminal())
    with notices.shown("working"):
        assert sys.stderr.getvalue() == ""


def test_compile_shows_it_if_it_builds(monkeypatch):

    built = []

    def build(*args, **options):
        built.append(sys.stderr.getvalue())
        return kernel

    workload = flat(3)
    kernel = te_select.compile(workload)
    monkeypatch.setattr("te_select.compiler.build.kernel", build)
    monkeypatch.setattr("sys.stderr", Terminal())
    te_select.compile(workload)  # from the cache
    assert sys.stderr.getvalue() == ""
    te_select.compile(flat(4))
    assert built == ["te_select.compile: building a kernel, once ..."]


@mark.parametrize(
    "part, words",
    [
        ("w4", "kernels for 4-byte elements"),
        ("w16", "kernels for 16-byte elements"),
        ("w2_rows07", "kernels for short rows of 2-byte elements"),
    ],
)
def test_where_shows_what_it_builds(part, words, monkeypatch, tmp_path):
    built = []

    def image(parts, _target):
        built.append(sys.stderr.getvalue())
        raise ToolchainError("there is no compiler")

    monkeypatch.setattr("te_select.compiler.family_library.build_family", image)
    monkeypatch.setattr("te_select.selecting.kernels.library.PREBUILT", tmp_path / "none")
    for name in ("_loaded", "_failed"):
        monkeypatch.setattr(library, name, set())
    monkeypatch.setattr("te_select.errors.notices._warned_of", {"where"})
    monkeypatch.setattr("sys.stderr", Terminal())
    assert not library.fetch(part)
    assert built == [f"te_select.where: building {words}, once ..."]
    assert np.array_equal(te_select.where(np.ones(3, bool), 1.0, 2.0), np.ones(3))
