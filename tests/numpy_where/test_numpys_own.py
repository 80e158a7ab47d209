"""NumPy's own tests of where, and the corpus, with te_select.where in the place of numpy.where."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import te_select
from te_select.operator.access import access_pattern
from te_select.verify.reference import placed
from tests.corpus.cases import read
from tests.corpus.run import workload_of
from tests.corpus.values import operands
from tests.support.programs import output
from tests.support.where_calls import difference, outcome, path_of_python


def test_numpys_own_tests_pass(tmp_path):
    spec = importlib.util.find_spec("numpy._core.tests.test_multiarray")
    if spec is None or importlib.util.find_spec("hypothesis") is None:
        pytest.skip("NumPy is installed without its tests")
    said = output(
        *(sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider"),
        *("-c", "/dev/null", "--rootdir", tmp_path, "-p", "tests.support.numpy_where_replaced"),
        *("-k", "TestWhere", spec.origin),
        cwd=tmp_path,
        PYTHONPATH=path_of_python(),
    )
    passed = re.search(r"(\d+) passed", said)
    calls = re.search(r"te_select.where: (\d+) calls", said)
    assert passed and calls and int(passed[1]) >= 10, said
    assert int(calls[1]) > 100, said


def arrays(run, random):
    """The arrays of a run, as its system's rule lines them up."""
    workload = workload_of(run)
    if isinstance(workload, te_select.SelectError):
        shapes = run.instance.shapes.values()
        if any(isinstance(dim, str) for shape in shapes for dim in shape):
            return None
        return [
            np.ones(shape, dtype) for shape, dtype in zip(shapes, ("?", "f4", "f4"), strict=True)
        ]
    bound = workload.bind(run.instance.sizes)
    if access_pattern(bound).bytes_moved() > 1 << 26:
        return None
    return placed(bound, *operands(run, bound, random))


@pytest.mark.skipif("TE_SELECT_CORPUS" not in os.environ, reason="TE_SELECT_CORPUS is not set")
def test_the_corpus_passes():
    paths = sorted(Path(os.environ["TE_SELECT_CORPUS"]).glob("*.json"))
    runs = [run for run in read(*paths) if not run.skip]
    done = 0
    for number, run in enumerate(runs):
        given = arrays(run, np.random.default_rng(number))
        if given is not None:
            found = difference(outcome(te_select.where, given), outcome(np.where, given))
            assert found is None, (str(run), found)
            done += 1
    assert done > len(runs) // 2 > 100
