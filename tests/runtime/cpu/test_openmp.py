"""OpenMP runtimes of a process are found by their names, also if they are loaded late."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from te_select.machines.c_compiler import c_compiler
from tests.support import c_half

RUNTIME = "int inside; int omp_in_parallel(void) { return inside; }\n"
ALONE = """
    import ctypes, shutil, sys
    half, runtime, folder = sys.argv[1:]
    ask = ctypes.CDLL(half).te_select_in_openmp_region

    def load(name):
        return ctypes.CDLL(shutil.copy(runtime, f"{folder}/{name}"))

    def say(library, inside):
        ctypes.c_int.in_dll(library, "inside").value = inside
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("openmp")
    source, runtime = folder / "runtime.c", folder / "runtime.so"
    source.write_text(RUNTIME)
    subprocess.run([*c_compiler(), "-shared", "-fPIC", source, "-o", runtime], check=True)
    return c_half.build(folder, "", ["cpu/openmp.c"]), runtime


def alone(built, folder, code):
    """Run code in a new process, where no runtime is loaded yet."""
    words = [sys.executable, "-c", textwrap.dedent(ALONE) + textwrap.dedent(code)]
    done = subprocess.run(
        [*words, *map(str, built), str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["libgomp.so.1", "libgomp-a34b3233.so.1.0.0", "libomp.so.5"])
def test_runtime_is_asked_again_at_every_call(built, tmp_path, name):
    code = f"""
        runtime = load({name!r})
        for inside in (0, 1, 0):
            say(runtime, inside)
            assert ask() == inside
    """
    alone(built, tmp_path, code)


def test_runtime_of_intel_is_asked(built, tmp_path):
    alone(built, tmp_path, "say(load('libiomp5.so'), 1)\nassert ask() == 1")


def test_library_of_another_name_is_not_asked(built, tmp_path):
    alone(built, tmp_path, "say(load('libother.so'), 1)\nassert ask() == 0")


def test_runtime_that_is_loaded_after_the_first_call_is_asked_too(built, tmp_path):
    code = """
        assert ask() == 0
        say(load("libgomp.so.1"), 1)
        assert ask() == 1
    """
    alone(built, tmp_path, code)


def test_runtime_is_known_once_however_often_libraries_are_loaded(built, tmp_path):
    code = """
        load("libgomp.so.1")
        for k in range(10):
            load(f"libother{k}.so")
            assert ask() == 0
        say(load("libomp.so"), 1)
        assert ask() == 1
    """
    alone(built, tmp_path, code)


LOOP = """
int te_select_in_openmp_region(void);
int ask_often(int times) {
  int inside = 0;
  while (times--) inside += te_select_in_openmp_region();
  return inside;
}
"""


def test_forked_child_can_load_libraries_though_threads_were_asking(built, tmp_path):
    """Of 40 children, 3 hung: they had inherited a lock of the dynamic linker."""
    _, runtime = built
    half = c_half.build(tmp_path, LOOP, ["cpu/openmp.c"])
    code = """
        import os, signal, threading
        half = ctypes.CDLL(half)
        stop = []

        def ask():
            while not stop:
                half.ask_often(10_000)

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        hung = 0
        for _ in range(300):
            child = os.fork()
            if not child:
                signal.alarm(5)
                ctypes.CDLL(runtime)
                os._exit(half.ask_often(1))
            hung += os.waitpid(child, 0)[1] != 0
        stop.append(1)
        for thread in threads:
            thread.join()
        assert not hung, hung
    """
    alone((half, runtime), tmp_path, code)
