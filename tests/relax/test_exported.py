"""The library of a model: one file that runs with TVM's runtime alone."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import tvm
from pytest import mark, raises
from tvm import relax, s_tir
from tvm.s_tir import dlight

from te_select import ArtifactError, load
from te_select.relax import UseSelect
from tests.support.machines import LEVEL, SEVERAL
from tests.support.relax_models import TARGET, expected, operands, where_module

MASK = ((1, 1, 64, 64), (2, 6, 64, 64), ())
LARGE = ((1 << 20,), (1 << 20,), (1 << 20,))
RUN = """if True:
    import sys
    for name in ("te_select", "torch"):
        sys.modules[name] = None
    import numpy as np
    import tvm
    from tvm.runtime.vm import VirtualMachine
    assert tvm.base._RUNTIME_ONLY

    def run(library, arrays):
        vm = VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())
        return vm["main"](*map(tvm.runtime.tensor, arrays)).numpy()

    given = np.load("arrays.npz")
    arrays = [given[name] for name in given.files]
"""


WRITE = '    sys.stdout.buffer.write(run("model.so", arrays).tobytes())\n'


def model(folder, shapes, kernels):
    """Export a model of one where, with its operands beside it; the result."""
    built = tvm.compile(UseSelect(kernels)(where_module(*shapes)), TARGET)
    built.export_library(folder / "model.so")
    arrays = operands(*shapes)
    np.savez(folder / "arrays.npz", *arrays)
    return expected(arrays)


def check(folder, result, script=WRITE):
    """A script ends well with TVM's runtime and no te_select, and writes the result."""
    interpreter = str(Path(sys.executable).resolve())
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TVM_USE_RUNTIME_LIB": "1",
    }
    done = subprocess.run(
        [interpreter, "-c", RUN + script],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout == result) == (0, True), done.stderr.decode()


@mark.parametrize("shapes", [MASK, LARGE])
def test_model_runs_with_the_runtime_of_tvm_alone(tmp_path, shapes):
    check(tmp_path, model(tmp_path, shapes, SEVERAL))


def test_model_with_kernels_is_no_library_that_was_changed(tmp_path):
    model(tmp_path, MASK, LEVEL)
    with raises(ArtifactError, match=r"model\.so has kernels that were linked into it"):
        load(tmp_path / "model.so")


@dlight.ScheduleRule.from_callable("Parallel")
def in_parallel(func, _target, _tunable):
    sch = s_tir.Schedule(func)
    (block,) = sch.get_child_blocks(sch.get_sblock("root"))
    sch.parallel(sch.get_loops(block)[0])
    return sch


def negative_before(c, x, y):
    return relax.op.where(c, relax.op.negative(x), y)


@mark.parametrize("loops, threads, ours", [(True, 2, False), (True, 1, True), (False, 2, True)])
def test_threads_are_those_of_tvm_if_it_has_some(tmp_path, loops, threads, ours):
    """Ours have a name of their own. TVM has some in a model with a parallel loop."""
    passes = [UseSelect(TARGET), relax.transform.LegalizeOps()]
    with TARGET:
        mod = tvm.transform.Sequential(
            [*passes, *[dlight.ApplyDefaultSchedule(in_parallel)] * loops]
        )(where_module(*LARGE, build=negative_before))
    tvm.compile(mod, TARGET).export_library(tmp_path / "model.so")
    cond, then, else_, sizes = operands(*LARGE, dtype="int32")
    arrays = [cond, then.view("float32"), else_.view("float32"), sizes]
    np.savez(tmp_path / "arrays.npz", *arrays)
    script = f"""
    import os, pathlib
    os.environ |= {{"TVM_NUM_THREADS": "{threads}", "TE_SELECT_NUM_THREADS": "2"}}
    out = run("model.so", arrays).tobytes()
    names = [path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
    assert ("te_select" in names) == {ours}, names
    sys.stdout.buffer.write(out)
    """
    check(tmp_path, expected([cond, -arrays[1], arrays[2]]), script)
