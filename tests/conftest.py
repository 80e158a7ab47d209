import contextlib
import itertools
import shutil
import signal
import sys
from os import environ, pathsep
from pathlib import Path

import filelock
import hypothesis
from pytest import MonkeyPatch, fixture, mark, skip

from te_select.records import folders
from te_select.runtime.call.cuda import driver

hypothesis.settings.register_profile("untimed", deadline=None)  # other work may run beside
hypothesis.settings.load_profile("untimed")

_tests = itertools.count()
NO_TORCH = Path(__file__).parent / "support" / "no_torch"
ROWS = ("w1_rows05", "w2_rows03", "w4_rows05", "w4_rows14", "w8_rows09", "w4_rows11")  # of where()


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew, to be reviewed"
    )


@fixture
def update_golden(request):
    """Whether the golden files are to be written."""
    return request.config.getoption("--update-golden")


def pytest_configure(config):
    # A shell ignores it for background jobs, and children would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # If torch is installed, tvm_ffi imports it, which takes 2 s in each process of a test. The
    # workers of pytest-xdist need it: they hide it from their own children.
    if not getattr(config.option, "numprocesses", None):
        paths = [str(NO_TORCH), environ.get("PYTHONPATH", "")]
        environ["PYTHONPATH"] = pathsep.join(filter(None, paths))


KEEPING_CC = """#!/bin/sh
case "$KEPT_OBJECTS $*" in
/*" -c "*/te_select/runtime/*) ;;
*) exec {real} "$@" ;;
esac
all="$*" out=""
for out; do :; done  # the last argument
kept=$KEPT_OBJECTS/$(printf %s "${{all% *}}" | cksum | tr " " -)
if [ ! -e "$kept" ]; then
  {real} "$@" && cp "$out" "$kept.$$" && mv "$kept.$$" "$kept"
  exit
fi
cp "$kept" "$out"
"""


@fixture(autouse=True, scope="session")
def keeping_cc(request, tmp_path_factory):
    """Keep the objects of te_select's C files, which each process that compiles makes in 1 s.

    The script is one file for all runs: names in the cache depend on the compiler's file.
    """
    real = shutil.which("cc")
    if real is None or "KEPT_OBJECTS" in environ:  # pytest in a test has it from its parent
        yield
        return
    script = request.config.cache.mkdir("cc").absolute() / "cc"
    text = KEEPING_CC.format(real=real)
    with filelock.FileLock(script.with_name("lock")):
        if not script.exists() or script.read_text() != text:
            script.write_text(text)
            script.chmod(0o755)
    with MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(script.parent), prepend=pathsep)
        patch.setenv("KEPT_OBJECTS", str(tmp_path_factory.mktemp("objects")))
        yield


@fixture
def one_process(monkeypatch):
    """Compile in this process alone: a second one takes 1 s to start, and the cores are busy."""

    monkeypatch.setattr("te_select.backends.cpu.objects.MANY", sys.maxsize)


@fixture(autouse=True)
def idle(monkeypatch):
    """Count the cores as idle: other tests use them, and no record would be sure."""
    monkeypatch.setattr("te_select.timing.cores.Watch.others", lambda _: 0.0)


@fixture(autouse=True, scope="session")
def own_folder(tmp_path_factory):
    """A user's folder of records that is empty."""
    folder = str(tmp_path_factory.mktemp("user"))
    with MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", folder)
        yield folder


@fixture
def own_records(tmp_path, monkeypatch):
    """The user's own folder of records, which is missing; none is shipped."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("te_select.records.folders.SHIPPED", tmp_path / "shipped")
    return folders.user_folder()


@fixture(autouse=True)
def own_cache(monkeypatch, tmp_path_factory):
    """A cache that is empty: every test builds what it tests, and none uses that of the user."""
    folder = tmp_path_factory.getbasetemp() / "caches" / str(next(_tests))
    monkeypatch.setenv("TE_SELECT_CACHE_DIR", str(folder))


@contextlib.contextmanager
def kept_cache(request, name):
    """Have a cache that stays for later runs."""
    folder = request.config.cache.mkdir(name).absolute()
    folder.chmod(0o700)
    with MonkeyPatch.context() as patch:
        patch.setenv("TE_SELECT_CACHE_DIR", str(folder))
        yield folder


@fixture(scope="session")
def family(request):
    """A cache with runs of all widths, some rows and all stages of where(). Later runs have it."""
    from te_select.base import cache
    from te_select.operator.family import STAGES, parts
    from te_select.selecting.kernels import building, library

    if library.extension is None:
        skip("the extension was not built")
    with kept_cache(request, "where") as folder:
        with filelock.FileLock(folder / "lock"):
            if cache.read(library.entry(library.WHOLE)) is None:
                runs = [name for name in parts() if "rows" not in name]
                cache.clear()  # entries that other sources have made
                made = building.build_family([*runs, *ROWS, STAGES], "native")
                cache.write(library.entry(library.WHOLE), made.image)
        assert library.fetch("w4")
        yield folder


@fixture(scope="session")
def every_kernel(request):
    """The library of all kernels of where(), in a cache. Later runs have it."""
    from te_select.selecting.kernels import library

    with kept_cache(request, "every_kernel") as folder, filelock.FileLock(folder / "lock"):
        return library.whole_file()


def pytest_collection_modifyitems(items):
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and (missing := driver.missing()):
        for item in on_gpu:
            item.add_marker(mark.skip(reason=missing))
