"""The runner of peers' tests, with a peer whose tests take no time."""

import textwrap

import pytest

from tests.peers import __main__ as peers
from tests.support.cases import the_others_slow

FILES = {
    "toy/__init__.py": "from numpy import where\n",
    "toy/test_toy.py": """
        import os
        import numpy as np
        import toy

        AT_IMPORT = np.where

        def test_values():
            assert toy.where is AT_IMPORT is np.where
            where = toy.where(np.arange(6) > 2, np.arange(6.0), 0.5)
            assert where.tolist() == [0.5, 0.5, 0.5, 3, 4, 5]

        def test_module():
            assert np.where.__module__ == "numpy"
    """,
    "wrong.py": """
        from te_select import copyto, putmask, select, where as right

        def where(cond, x, y):
            return right(cond, y, x)
    """,
    "idle.py": "from numpy import copyto, putmask, select, where\n",
}
MODULE = "toy/test_toy.py::test_module"


@pytest.fixture
def run(tmp_path, monkeypatch, family):
    """Run the toy's tests; the exit code."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("TE_SELECT_CACHE_DIR", str(family))
    monkeypatch.setattr(peers, "LIBRARIES", {"toy": (["toy"], "")})
    monkeypatch.setattr(peers, "KNOWN", {"toy": {MODULE: "names its module"}})
    return lambda *flags: peers.main(["--processes", "0", *flags])


def test_functions_are_there_before_tests_are_collected(run, capsys):
    assert run() == 0
    printed = capsys.readouterr().out
    assert "1 passed, 1 failed" in printed and "1 calls" in printed
    assert "known, 1: names its module" in printed


@pytest.mark.slow
def test_unknown_difference_ends_with_exit_code_1(run, capsys, monkeypatch):
    monkeypatch.setattr(peers, "KNOWN", {})
    assert run() == 1
    assert f"WRONG: {MODULE}" in capsys.readouterr().out


@pytest.mark.parametrize("flags", the_others_slow([[], ["--compare"]], [["--compare"]]))
def test_wrong_where_is_noticed(run, capsys, monkeypatch, flags):
    monkeypatch.setenv("PEERS_FUNCTIONS", "wrong")
    assert run(*flags) == 1
    assert "WRONG: toy/test_toy.py::test_values" in capsys.readouterr().out


def test_functions_that_serve_no_call_are_noticed(run, capsys, monkeypatch):
    monkeypatch.setenv("PEERS_FUNCTIONS", "idle")
    assert run() == 1
    assert "WRONG: kernels have served no call" in capsys.readouterr().out


def test_equal_calls_are_enlarged(run, capsys):
    assert run("--compare") == 0
    printed = capsys.readouterr().out
    assert "2 compared, 1 enlarged" in printed and "1 large" in printed


def test_missing_library_is_named(run, capsys, monkeypatch):
    monkeypatch.setattr(peers, "NEEDED", {"toy": ("no_such_library",)})
    assert run() == 0
    assert "no_such_library is missing" in capsys.readouterr().err
