"""A torch that is installed and broken: what te_select says, as tvm-ffi imports it."""

import os
import sys

import pytest

from tests.support import ROOT, ended

BROKEN = {
    "library": 'raise OSError("libcublas.so.12: cannot open shared object file")',
    "left behind": "",  # by an uninstallation, for example
}


@pytest.fixture(params=BROKEN)
def run(request, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(BROKEN[request.param])
    paths = os.pathsep.join((str(tmp_path), str(ROOT)))  # without what hides torch
    environment = {**os.environ, "PYTHONPATH": paths, "TE_SELECT_CACHE_DIR": str(tmp_path / "c")}

    def called(*command):
        return ended(sys.executable, *command, env=environment)

    return called


VERB = "from te_select.cli import main; main()"


def test_verbs_do_without_torch(run):
    done = run("-c", VERB, "logs", "list", "--tuning-logs", ROOT / "tuning_logs")
    assert done.returncode == 0, done.stderr


def test_bench_says_that_torch_is_broken_and_what_to_do(run):
    done = run("-c", VERB, "bench", "--only", "scalar")
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and len(lines) == 1
    assert lines[0].startswith("te-select: error: torch is installed but broken (")
    assert lines[0].endswith("install torch again, or uninstall it")


def test_where_leaves_the_work_to_numpy(run):
    code = """
        import warnings
        import numpy as np, te_select
        from te_select.selecting.kernels import library
        from pathlib import Path
        library.PREBUILT = Path("none")
        with warnings.catch_warnings(record=True) as warned:
            print(te_select.where(np.arange(3) > 1, 1, 2), te_select.where.stats().left)
        print(len(warned), warned[0].message)
    """
    done = run("-c", "if True:" + code)
    result, warning = done.stdout.splitlines()
    assert result == "[2 2 1] {'no kernel': 1}"
    assert (
        warning.startswith("1 te_select.where has no kernels") and "torch is installed" in warning
    )
