"""Libraries that are opened and closed: many of them, and while their threads wait or work."""

import shutil
import sys

import pytest

import te_select
from tests.support import output
from tests.support.plain_c_caller import SHAPE
from tests.support.runtime_standin import library_of

WORKLOAD = te_select.Workload(SHAPE, SHAPE, SHAPE)


def run(*paths):
    command = sys.executable, "-m", "tests.support.plain_c_caller", WORKLOAD.name, *paths
    said = output(*command, TE_SELECT_NUM_THREADS="3")
    assert said == "every call was right\n"


@pytest.mark.parametrize("count", [1, 500])
def test_library_is_closed_while_its_threads_wait_and_work(tmp_path, count):
    """Each copy of a file is loaded as a library of its own."""
    standin = library_of(WORKLOAD, bytes_per_thread=256)  # small, and with threads
    run(*(shutil.copy(standin, tmp_path / f"{i}.so") for i in range(count)))
