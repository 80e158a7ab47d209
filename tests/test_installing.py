"""An installation from the sources: without a compiler, and Python that is started beside them."""

import shutil
from sys import executable, version_info

from pytest import fixture, mark, skip

from tests.support import ROOT, ended

MINOR = f"{version_info[0]}.{version_info[1]}"


@fixture(scope="module")
def clone(tmp_path_factory):
    """The sources, in which nothing is built."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("LICENSE", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, folder)
    ignored = shutil.ignore_patterns("_extension.*.so", "__pycache__")
    shutil.copytree(ROOT / "te_select", folder / "te_select", ignore=ignored)
    return folder


def python(folder, *words, **variables):
    return ended(executable, *words, cwd=folder, **variables)


@mark.slow
def test_without_a_compiler_one_line_names_the_wheel(clone, tmp_path):
    words = ("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir")
    done = python(clone, *words, tmp_path, ".", CC="/nonexistent")
    assert done.returncode == 1
    (line,) = (line for line in done.stderr.splitlines() if "te-select needs a C compiler" in line)
    assert "/nonexistent" in line and "install the wheel te_select_runtime-" in line
    assert "for each Python from 3.10 on" in line and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


OFFLINE = ("unshare", "--map-root-user", "--mount", "--net")
READ_ONLY = """
    mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 3
    touch "$1/new" 2>/dev/null && exit 4
    cd / && exec env -u HOME "$2" -m pip wheel --no-index --no-deps --no-build-isolation \\
        --wheel-dir "$3" "$1"
"""


@mark.slow
def test_wheels_of_two_read_only_paths_are_equal_and_offline(clone, tmp_path):
    if not shutil.which("unshare") or ended(*OFFLINE, "true").returncode:
        skip("no right to make namespaces")
    wheels = []
    for name in ("here", "a/deeper/place"):
        sources = tmp_path / name
        out = tmp_path / f"out{len(wheels)}"
        shutil.copytree(clone, sources)
        words = (sources, executable, out)
        done = ended(*OFFLINE, "sh", "-c", READ_ONLY, "sh", *words, SOURCE_DATE_EPOCH="1764000000")
        assert done.returncode == 0, done.stderr
        wheels += out.iterdir()
    assert wheels[0].name == wheels[1].name
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


@mark.parametrize(
    "use", ["te_select.where(True, 1, 2)", "te_select.compile(te_select.Workload((4,), (4,), ()))"]
)
def test_python_in_a_clone_says_that_nothing_is_built_there(clone, use):
    done = python(clone, "-c", f"import te_select\n{use}", PYTHONPATH="")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: {clone / 'te_select'} are sources of te_select, in which nothing is built "
        f"for Python {MINOR}: start Python in another folder, or run pip install -e . in this one"
    )


def test_levels_are_read_of_sources_in_which_nothing_is_built(clone):
    done = python(clone, "-c", "from te_select.base.levels import *; print(ABOVE_BASELINE)")
    assert done.returncode == 0 and "x86-64-v3" in done.stdout, done.stderr
