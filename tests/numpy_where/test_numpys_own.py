"""NumPy's own tests of where, with te_select.where in the place of numpy.where."""

import importlib.util
import re
import sys

import pytest

from tests.support.programs import output
from tests.support.where_calls import path_of_python


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
