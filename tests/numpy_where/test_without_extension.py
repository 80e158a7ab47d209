"""Without the extension: NumPy, or the library of the tensors, does each call, with one warning."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.where_calls import path_of_python

NO_EXTENSION = Path(__file__).parents[1] / "support" / "no_extension"


def run(code, *paths):
    """What a program prints that finds no extension, as JSON, and what it warns of."""
    code = (
        """
        import json, warnings
        import numpy as np
        import te_select
        from te_select import where

        caught = warnings.catch_warnings(record=True)
        warned = caught.__enter__()
        warnings.simplefilter("always")
    """
        + code
    )
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (NO_EXTENSION, *paths)))},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_results_and_errors_are_those_of_numpy():
    warned, calls, left = run(
        """
        from tests.support.where_calls import difference, outcome, random_call
        where(True, 1, 2)
        first = [str(each.message) for each in warned]
        for number in range(200):
            given = random_call(np.random.default_rng([12, number]), 3000)
            assert difference(outcome(where, given), outcome(np.where, given)) is None, number
        assert where(np.array([0, 3]))[0].tolist() == [1]
        stats = where.stats()
        print(json.dumps([first, stats.calls, stats.left]))
        """,
        path_of_python(),
    )
    (text,) = warned
    assert "leaves the work to NumPy" in text and "install te-select again" in text
    assert (calls, left) == (0, {"no extension": 201, "arguments": 1})


def test_out_is_written_or_refused_as_with_the_extension():
    errors = run(
        """
        cond, x = np.arange(6) % 2 == 0, np.arange(6.0)
        out = np.empty(12)[::2]
        assert where(cond, x, 7, out=out) is out and out.tolist() == [0, 7, 2, 7, 4, 7]
        assert where(cond, x[::-1], x, out=x) is x and x.tolist() == [5, 1, 3, 3, 1, 5]
        errors = []
        for given, options in (
            ((cond, x, 7), {"out": np.empty(5)}),
            ((cond, x, 7), {"out": np.empty(6, "f4")}),
            ((cond, x, 7), {"out": [0.0] * 6}),
            ((cond,), {"out": out}),
            ((cond, x, 7), {"axis": 0}),
        ):
            try:
                where(*given, **options)
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")
        print(json.dumps(errors))
        """,
        path_of_python(),
    )
    assert errors == [
        "ValueError: out has shape (5,); expected (6,)",
        "TypeError: out has element type float32; expected float64",
        "TypeError: out is a list; expected an array",
        "TypeError: where() takes out only with cond, x and y",
        "TypeError: where() got an unexpected keyword argument 'axis'; expected out",
    ]


def test_it_looks_like_a_function_and_takes_no_library(tmp_path):
    refused = run(
        f"""
        import inspect, pickle
        assert pickle.loads(pickle.dumps(where)) is where
        assert list(inspect.signature(where).parameters) == ["cond", "x", "y", "out"]
        try:
            where.use({str(tmp_path / "where.so")!r})
        except te_select.ArtifactError as error:
            print(json.dumps(str(error)))
        """,
        path_of_python(),
    )
    assert "install te-select again" in refused


def test_kernels_are_compiled_and_called():
    assert run(
        """
        cond, x = np.arange(6) % 2 == 0, np.arange(6.0)
        kernel = te_select.compile(te_select.Workload((6,), (6,), (), "float64"))
        out = np.empty(6)
        assert kernel(cond, x, 7.0, out=out) is out and (out == kernel(cond, x, 7.0)).all()
        print(json.dumps(out.tolist()))
        """,
        path_of_python(),
    ) == [0, 7, 2, 7, 4, 7]


def test_tensors_of_torch_are_selected_by_torch():
    pytest.importorskip("torch")
    warned = run(
        """
        import torch
        from te_select.torch import where as operator
        cond, x = torch.arange(6) % 2 == 0, torch.arange(6.0)
        out = torch.empty(6)
        assert where(cond, x, x + 1, out=out) is out
        for function in (where, operator):
            assert torch.equal(function(cond, x, 7.0), torch.where(cond, x, 7.0))
        weight = torch.ones(6, requires_grad=True)
        where(cond, weight, 0.0).sum().backward()
        assert torch.equal(weight.grad, cond.float())
        print(json.dumps([str(each.message) for each in warned]))
        """,
        *path_of_python().split(os.pathsep)[:1],
    )
    assert len(warned) == 1
