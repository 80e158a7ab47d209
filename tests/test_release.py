"""The two distributions: each is made from its sdist, and works where it is installed."""

import importlib.metadata
import os
import shutil
import subprocess
import sysconfig
import tarfile
import textwrap
import zipfile
from pathlib import Path
from sys import executable, version_info

from filelock import FileLock
from packaging.requirements import Requirement
from pytest import fixture, mark, skip

import te_select
from tests.support import ROOT, ended, masked_rows, output

pytestmark = [mark.slow, mark.skipif(shutil.which("make") is None, reason="no make")]
LEVEL = "x86-64-v2"
NEEDED = ("apache-tvm-ffi", "numpy")
EXAMPLE = masked_rows(4, 8)
WHERE = """
    import os, sys
    import numpy as np
    import te_select

    assert "site-packages" in te_select.__file__, te_select.__file__
    cond, x = np.arange(5000) % 3 == 0, np.arange(5000, dtype="f4")
    assert (te_select.where(cond, x, -1) == np.where(cond, x, -1)).all()
    assert te_select.where.stats().calls == 1, te_select.where.stats()
    assert "tvm" not in sys.modules
    assert not os.path.exists(os.environ["TE_SELECT_CACHE_DIR"])
    rows = np.ones((300, 5), "f8")
    assert te_select.where(cond[:300, None], rows, 0).sum() == 500
"""
RUNTIME = """
    import os, pickle, sys
    import numpy as np
    import te_select
    from te_select.verify.verify import verify_kernel

    kernel = te_select.load(sys.argv[1])
    assert all(result.passed for result in verify_kernel(kernel))
    assert pickle.loads(pickle.dumps(kernel)).workload == kernel.workload
    assert (kernel.target, kernel.origin, kernel.level) == ("x86-64-v2", "default", "x86-64-v2")
    for build in (
        lambda: te_select.compile(kernel.workload),
        lambda: te_select.export([kernel.workload], "x.so"),
        lambda: te_select.tune(kernel.workload),
        lambda: te_select.read_model("model.onnx"),
        lambda: te_select.where.build("where.so"),
        lambda: kernel.source("asm"),
    ):
        try:
            build()
        except te_select.SelectError as error:
            assert "install the wheel of te-select by its path" in str(error), error
        else:
            raise AssertionError("there is a compiler")
    assert not hasattr(te_select, "tune") and not hasattr(te_select, "export")
    del os.environ["TE_SELECT_CACHE_DIR"]
    assert (te_select.where(np.arange(9) % 2 == 0, 1.5, np.zeros(9)) == [1.5, 0] * 4 + [1.5]).all()
"""


@fixture(scope="module")
def made(tmp_path_factory, worker_id):
    """The folder of the sdists and the wheels, made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "dist"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            make_wheels(folder)
    return folder


def make_wheels(folder):
    programs = Path(executable).parent
    work = folder.with_name("work")
    places = (f"DIST={work}/dist", f"WORK={work}", f"BIN={programs}", f"BUILT={folder.parent}")
    made = ended("make", "-C", ROOT, "wheel", f"LEVELS={LEVEL}", *places, timeout=900)
    if "Could not find a version" in made.stderr + made.stdout:
        skip("no package index can be reached")
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    (work / "dist").rename(folder)


@fixture(scope="module")
def library(tmp_path_factory):
    return te_select.export([EXAMPLE], tmp_path_factory.mktemp("library") / "mask.so", LEVEL)


def wheel_of(made, name):
    """The wheel of this Python; the runtime has one for each that was found."""
    tag = f"cp3{version_info[1]}"
    return next(
        path for path in made.glob(f"{name}-*.whl") if tag in path.name or "py3" in path.name
    )


def environment(folder, made, *names):
    """Python of a new environment with these of the wheels."""
    subprocess.run([executable, "-m", "venv", folder], check=True)
    python = folder / "bin/python"
    wheels = [wheel_of(made, name) for name in names]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", *wheels], check=True)
    return python


def packages(python):
    """The folder of the packages of an environment."""
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(output(python, "-c", where).strip())


def lend(python, *names):
    """Give an environment some packages of this one, and what they need, as links."""
    for name in names:
        distribution = importlib.metadata.distribution(name)
        for top in {Path(file).parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            target = packages(python) / top
            if not target.exists():
                target.symlink_to(Path(distribution.locate_file(top)).resolve())
        needed = map(Requirement, distribution.requires or ())
        lend(python, *(need.name for need in needed if not need.marker or need.marker.evaluate()))


def run(*words, **variables):
    """Run a program that has no home and finds no other program."""
    return ended(*words, cwd="/", env={"PATH": "", "HOME": "/dev/null"}, **variables)


def well(*words, **variables):
    """What such a program prints, which must not fail."""
    done = run(*words, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def code(text):
    return textwrap.dedent(text)


@fixture(scope="module")
def installed(made, tmp_path_factory):
    """Python of an environment that has both wheels, and sees the packages of this one."""
    python = environment(tmp_path_factory.mktemp("both"), made, "te_select", "te_select_runtime")
    others = packages(python) / "zz_others.pth"
    others.write_text(sysconfig.get_path("purelib") + "\n")
    return python


@fixture(scope="module")
def runtime(made, tmp_path_factory):
    """Python of an environment that has te-select-runtime, NumPy and tvm-ffi alone."""
    python = environment(tmp_path_factory.mktemp("runtime"), made, "te_select_runtime")
    lend(python, *NEEDED)
    return python


def test_where_of_the_wheels_needs_no_compiler(installed, runtime, tmp_path):
    for python in (installed, runtime):
        well(python, "-c", code(WHERE), TE_SELECT_CACHE_DIR=tmp_path / "cache")


def test_wheels_compile_verify_and_show_their_version(installed, tmp_path):
    shell = installed.with_name("te-select")
    shapes = ("--cond", "4,1", "--then", "4,5", "--else", "")
    path = tmp_path / "mask.so"
    for words in (("compile", *shapes, "-o", path), ("verify", path), ("logs", "list")):
        well(shell, *words, PATH=os.environ["PATH"], HOME=tmp_path)
    assert well(shell, "--version") == f"te-select {te_select.__version__}\n"


def test_runtime_verifies_beside_numpy_and_tvm_ffi_alone(runtime, library, tmp_path):
    done = run(runtime, "-W", "error", "-c", code(RUNTIME), library, TE_SELECT_CACHE_DIR=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    well(runtime, "-m", "pip", "check")


def test_runtime_says_in_one_line_that_typer_is_missing(runtime, library):
    done = run(runtime.with_name("te-select"), "verify", library)
    assert done.returncode == 1
    assert done.stderr.startswith("te-select: error: the command line needs typer, which is not")
    assert done.stderr.count("\n") == 1


def test_runtime_verifies_and_inspects_in_a_shell(made, library, tmp_path):
    python = environment(tmp_path / "shell", made, "te_select_runtime")
    lend(python, *NEEDED, "ml_dtypes", "rich", "typer")
    shell = python.with_name("te-select")
    for words in (("verify", library), ("inspect", library), ("env",)):
        well(shell, *words)
    missing = (
        ("compile", "--cond", "4", "--then", "4", "--else", "4", "-o", tmp_path / "x.so"),
        ("inspect", library, "--source", "asm"),
        ("inspect", "--model", library),
        ("bench", "--suite", "default"),
        ("profile",),
        ("where", "build", "-o", tmp_path / "where.so"),
    )
    for words in missing:
        done = run(shell, *words)
        assert done.returncode == 1, words
        assert "which is not installed; install the wheel of te-select" in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_wheels_share_no_file_and_lose_none(made):
    wheels = (wheel_of(made, name) for name in ("te_select", "te_select_runtime"))
    names = [set(zipfile.ZipFile(path).namelist()) for path in wheels]
    assert not names[0] & names[1]
    assert all(any("dist-info/sboms/" in name for name in each) for each in names)
    kernels = {f"te_select/prebuilt/libte_select_where{ending}" for ending in (".seal", ".so")}
    assert kernels <= names[1]
    wanted = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "te_select").rglob("*.py")
        if "schedules" not in path.parts
    }
    wanted |= {f"te_select/{path.relative_to(ROOT)}" for path in (ROOT / "schedules").rglob("*.py")}
    assert wanted <= names[0] | names[1]


@mark.parametrize(
    "name, present",
    [("te_select", "schedules/cpu/schedule.py"), ("te_select_runtime", "runtime/c/cpu/pool.c")],
)
def test_sdists_have_sources_and_no_machine_code(made, name, present):
    (sdist,) = made.glob(f"{name}-*.tar.gz")
    with tarfile.open(sdist) as archive:
        files = archive.getnames()
    assert any(file.endswith(f"te_select/{present}") for file in files)
    assert not [file for file in files if file.endswith((".so", ".seal"))]
