"""Images: loaded from the bytes that were checked, one for each content."""

import os
import textwrap
from unittest.mock import Mock

import tvm_ffi
from pytest import fixture, mark, raises

from te_select import ArtifactError
from te_select.base import scratch
from te_select.runtime.artifact import stored
from te_select.runtime.call import image, loading
from tests.support import ROOT, flat, open_files, python
from tests.support.runtime_standin import ARGS, library_of

W = flat(8)


@fixture
def built():
    return library_of(W)


def exchanged(text):
    """A source of the same size, that takes the other side."""
    return text.replace("j->c[at[0]] ?", "!j->c[at[0]]?")


@fixture
def swapped():
    return library_of(W, edit=exchanged)


START = """
import os, sys, threading
import numpy as np
from te_select.runtime.call import image, loading
args = np.array([1, 0] * 4, bool), np.ones(8, "f4"), np.zeros(8, "f4")
"""


def alone(code, *args, **environment):
    paths = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    return python(START + textwrap.dedent(code), *args, env=paths, **environment).splitlines()


LOADING = """
    kernels = [loading.load(sys.argv[1]) for _ in range(3)]
    assert all((k(*args) == args[0]).all() for k in kernels)
    maps = open("/proc/self/maps").read()
    print(len({line.split()[-1] for line in maps.splitlines() if "mask.so" in line}))
    print(next(line for line in maps.splitlines() if "mask.so" in line).split(None, 5)[5])
"""


def test_image_is_sealed_memory_named_like_the_library(built):
    count, name = alone(LOADING, built)
    assert (count, name) == ("1", "/memfd:mask.so (deleted)")


def test_profilers_can_have_a_file(built, tmp_path):
    count, name = alone(LOADING, built, TE_SELECT_PRIVATE_COPY="0", TMPDIR=tmp_path)
    assert count == "1"
    assert name.startswith(str(tmp_path)) and name.endswith("/mask.so")
    assert not list(tmp_path.iterdir())  # the copy was removed at the end of the process


def test_file_overwritten_in_place_does_not_change_the_image(built, swapped, tmp_path):
    path = tmp_path / "mask.so"
    path.write_bytes(built.read_bytes())
    first = loading.load(path)
    with path.open("r+b") as file:  # the same inode
        file.write(swapped.read_bytes())
        file.truncate()
    second = loading.load(path)
    assert (first(*ARGS) == ARGS[0]).all()
    assert (second(*ARGS) != ARGS[0]).all()


def test_image_cannot_be_written_any_more(built):
    code = """
        import ctypes
        GROW = "os.ftruncate(handle, 1 << 30)"
        def load(path):
            handle = os.dup(int(path.rpartition("/")[2]))
            for change in ("os.pwrite(handle, b'x', 0)", "os.ftruncate(handle, 9)", GROW):
                try:
                    eval(change)
                except PermissionError:
                    print("refused")
            return original(path)
        original, ctypes.CDLL = ctypes.CDLL, load
        loading.load(sys.argv[1])
    """
    assert alone(code, built) == ["refused"] * 3


def test_more_libraries_are_loaded_than_files_may_be_open(built):
    """Each of its own bytes, by a digest of its own; also after the first ones are gone."""
    code = """
        import resource
        from te_select.runtime.artifact import embedded, stored
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        data = open(sys.argv[1], "rb").read()
        kept = []
        for i in range(200):
            found = stored.from_bytes(embedded.seal(data + bytes([i])), "mask.so")
            kept.append(image.load(found, image.Path("mask.so"))[1])
            if i == 100:
                del kept[:]
        print(len(image._images), len(os.listdir("/proc/self/fd")) < 40)
        print(len({line.split()[4] for line in open("/proc/self/maps") if "memfd:mask" in line}))
        print((loading.load(sys.argv[1])(*args) == args[0]).all())
    """
    assert alone(code, built) == ["200 True", "200", "True"]


def test_error_of_too_many_open_files_says_so(built):
    code = """
        import resource
        from te_select.errors import ArtifactError
        image._ffi()
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        data = image.Path(sys.argv[1]).read_bytes()
        held = []
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        try:
            image.load_bytes(data, "0" * 64, image.Path("mask.so"))
        except ArtifactError as error:
            print(error)
    """
    (said,) = alone(code, built)
    assert "Too many open files; close some, or raise ulimit -n" in said and "/tmp" not in said


@mark.parametrize("is_library", [True, False])
def test_descriptor_of_memory_that_is_not_used_is_closed(built, is_library):
    """What cannot be loaded, and what turns out to be another library than was asked for."""
    before = open_files()
    data = built.read_bytes() if is_library else b"no library"
    for _ in range(3):
        assert image._from_memory(data, "0" * 64, built) is None
    assert open_files() == before


def test_copy_that_cannot_be_loaded_is_removed(built):
    before = dict(scratch._held)
    with raises(ArtifactError, match=f"{built} cannot be loaded: "):
        image._from_copy(b"no library", built)
    assert scratch._held == before


@mark.parametrize("reason", ["failed to map segment", "Operation not permitted"])
def test_folder_that_runs_no_programs_is_told_from_a_bad_file(built, monkeypatch, reason):
    monkeypatch.setattr("ctypes.CDLL", Mock(side_effect=OSError(reason)))
    with raises(ArtifactError, match=f"{reason}; set TMPDIR to a folder"):
        image._from_copy(b"", built)


def test_one_content_is_one_image(built, tmp_path):
    paths = [stored.write(stored.read(built), tmp_path / f"{i}.so") for i in range(20)]
    before = len(image._images)
    kernels = [loading.load(path) for path in paths]
    assert len(image._images) <= before + 1
    assert [kernel.path for kernel in kernels] == paths


def test_reused_descriptors_do_not_bring_back_an_old_image(built, swapped):
    """Descriptors that somebody closed: new memory has the number, and so the path, of the old."""
    code = """
        first = loading.load(sys.argv[1])
        os.closerange(3, 256)
        second = loading.load(sys.argv[2])
        assert (first(*args) == args[0]).all()
        print((second(*args) != args[0]).all())
    """
    assert alone(code, built, swapped) == ["True"]


def test_without_executable_memory_a_copy_is_loaded(built, monkeypatch):
    code = """
        def refused(*_):
            raise PermissionError(1, "not here")
        os.memfd_create = refused
        print((loading.load(sys.argv[1])(*args) == args[0]).all())
    """
    assert alone(code, built) == ["True"]


def test_threads_and_a_forked_child_load_at_once(built, swapped):
    code = """
        results = []
        threads = [
            threading.Thread(target=lambda: results.append(loading.load(sys.argv[1])(*args)))
            for _ in range(8)
        ]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert len(image._images) == 1 and all((r == args[0]).all() for r in results)
        image._lock.acquire()  # held as if by another thread at the fork
        child = os.fork()
        if child == 0:
            other = loading.load(sys.argv[2])
            threads = other._find("te_select_plan")(*[1 << 30] * 5, 1, 0, 0, 0, 1) >> 2
            os._exit(threads if (other(*args) != args[0]).all() else 0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert alone(code, built, swapped, TE_SELECT_NUM_THREADS="4") == ["1"]  # thread of the child


@mark.parametrize(
    "versions, warned",
    [
        (("0.1.8", "0.2.0", "1.0", "0.0.99", "0.1rc1"), True),
        (("0.1.9", "0.1.14.post1", "0.1.99rc1", "0.1.140"), False),
    ],
)
def test_untested_release_of_tvm_ffi_warns(versions, warned, recwarn):
    for version in versions:
        recwarn.clear()
        image.warn_of_untested(version)
        said = [str(warning.message) for warning in recwarn]
        assert len(said) == warned
        assert all(f"apache-tvm-ffi is {version}; " in text and ">=0.1.9" in text for text in said)


def test_release_of_the_runtime_asks_for_what_is_tested():
    text = (ROOT / "release/split.py").read_text("utf-8")
    assert f'"apache-tvm-ffi{image.TESTED}"' in text
    image.warn_of_untested(tvm_ffi.__version__)
