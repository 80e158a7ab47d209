"""A family for several levels: each CPU runs the best of those that it can run."""

import json
import shutil
import sys

from pytest import fixture, mark, raises

from te_select import TargetError, load
from te_select.backends.targets import resolve
from te_select.operator import family
from te_select.runtime.call.cpu import features
from te_select.selecting.kernels import building
from tests.support import output
from tests.support.cases import the_others_slow
from tests.support.machines import on_x86_64
from tests.support.where_calls import path_of_python

pytestmark = on_x86_64
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
HERE = [name for name in LEVELS if not features.missing(resolve(name).cpu_features)]
PARTS = ("w4", "w4_rows05")
EMULATOR = shutil.which("qemu-x86_64")
CPUS = {"Nehalem": "x86-64-v2", "Haswell": "x86-64-v3"}
USE = """
import json, sys
import numpy as np
import te_select
from te_select.selecting.kernels import library
from te_select.runtime.call import image
te_select.where.use(sys.argv[1])
rng = np.random.default_rng(0)
for cond, x, y in (
    ((5003,), (5003,), (5003,)),
    ((5003,), (), (5003,)),
    ((999, 1), (999, 7), (7,)),
    ((3, 5), (5,), (3, 1)),
):
    given = rng.random(cond) < 0.5, rng.random(x).astype("f4"), rng.random(y).astype("f4")
    assert te_select.where(*given).tobytes() == np.where(*given).tobytes()
number = image.call_for_int(library._first, "te_select_level")
print(json.dumps([number, te_select.where.stats().calls, "tvm" in sys.modules]))
"""


@fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("levels") / "where.so"
    made.write_bytes(building.build_family(PARTS, ",".join(LEVELS)).image)
    return made


def used(path, *emulator):
    """The level that the kernels of a process have, the calls they served, whether TVM was there.

    Nothing can be built there: the cache is a file.
    """
    said = output(
        *emulator,
        sys.executable,
        "-c",
        USE,
        path,
        OPENBLAS_CORETYPE="",  # NumPy's BLAS is to ask the emulated CPU, too
        TE_SELECT_CACHE_DIR="/dev/null",
        PYTHONPATH=path_of_python(),
    )
    number, calls, has_tvm = json.loads(said)
    return LEVELS[number], calls, has_tvm


def test_this_cpu_runs_the_best_level_that_it_can(path):
    assert used(path) == (HERE[-1], 4, False)


@mark.skipif(EMULATOR is None, reason="qemu-x86_64 is not installed")
@mark.parametrize("cpu", the_others_slow(CPUS, ["Haswell"]))
def test_an_older_cpu_runs_an_older_level(path, cpu):
    assert used(path, EMULATOR, "-cpu", cpu) == (CPUS[cpu], 4, False)


def test_load_takes_it_with_every_level(path):
    library = load(path)
    assert len(library) == sum(len(family.parts()[name]) for name in PARTS)
    assert {(kernel.level, kernel.levels) for kernel in library.values()} == {(HERE[-1], LEVELS)}


def test_a_target_that_is_no_cpu_is_refused():
    with raises(TargetError, match="is no CPU"):
        building.build_family(PARTS, "cuda:sm_90")
