"""Forks while another thread compiles, each case in a process of its own: never a hang."""

import inspect
import subprocess
import sys
import textwrap

import pytest

import te_select
import te_select.compiler
from te_select import forks

HELPERS = """
    import os, signal, sys, threading, time
    import te_select
    from te_select import Workload, forks

    def forked(child):
        # The exit code of a child.
        pid = os.fork()
        if not pid:
            signal.alarm(120)
            try:
                child()
                os._exit(0)
            except te_select.SelectError as error:
                print(type(error).__name__, error, flush=True)
                os._exit(3)
            except BaseException as error:
                print(repr(error), flush=True)
                os._exit(4)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def whole():
        with forks.held_off():
            pass

    def hold(inside, done):
        with forks.held_off():
            inside.set()
            done.wait()

    def holding():
        # Another thread is compiling until the event is set.
        inside, done = threading.Event(), threading.Event()
        threading.Thread(target=hold, args=(inside, done), daemon=True).start()
        inside.wait()
        return done
"""


def run(script, *words):
    code = textwrap.dedent(HELPERS) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ignored" not in done.stderr, done.stderr
    return done.stdout


def test_child_of_a_process_whose_thread_compiles_can_compile():
    """The first fork meets the import of tvm, the others a compilation."""
    said = run("""
        def compile_one(n=5):
            kernel = te_select.compile(Workload((n,), (n,), ()), tuning_logs=False)
            assert kernel.workload.out_shape == (n,)

        def compile_for_ever():
            for n in range(10, 10_000):
                compile_one(n)

        threading.Thread(target=compile_for_ever, daemon=True).start()
        ends = []
        for i in range(5):
            time.sleep(0.07 * i)
            ends.append(forked(compile_one))
        print(ends, flush=True)
        os._exit(0)
    """)
    assert said == "[0, 0, 0, 0, 0]\n"


def test_fork_waits_for_what_another_thread_compiles():
    run("""
        done = holding()
        threading.Timer(0.3, done.set).start()
        assert forked(whole) == 0
        assert done.is_set()
        whole()
    """)


def test_thread_that_begins_to_compile_waits_for_a_fork():
    run("""
        done = holding()
        fork = threading.Thread(target=forked, args=(whole,))
        fork.start()
        while not forks._gate._forking:
            time.sleep(0.01)
        late = threading.Thread(target=whole)
        late.start()
        late.join(0.3)
        assert late.is_alive()
        done.set()
        late.join()
        fork.join()
    """)


def test_thread_may_fork_while_it_compiles_itself():
    run("""
        with forks.held_off():
            assert forked(whole) == 0
            whole()
            assert forked(whole) == 0
        assert forked(whole) == 0
    """)


def test_child_of_a_fork_that_could_not_wait_refuses_to_compile_and_loads_all_the_same(tmp_path):
    path = te_select.export([te_select.Workload((4,), (4,), ())], tmp_path / "k.so")
    said = run(
        """
        assert te_select.load(sys.argv[1]).workload.out_shape == (4,)
        done = holding()
        forks.LONGEST_WAIT = 0.2

        def child():
            assert te_select.load(sys.argv[1]).workload.out_shape == (4,)
            te_select.compile(Workload((4,), (4,), ()))

        assert forked(child) == 3
        assert forked(lambda: forked(child) == 3 or os._exit(5)) == 0
        done.set()
        whole()
        assert forked(whole) == 0
        """,
        path,
    )
    assert said.startswith("ToolchainError this process cannot compile: it was forked while")


@pytest.mark.parametrize("name", ["compile", "export", "build_scheduled", "schedule", "source"])
def test_whatever_compiles_holds_off_forks(name, monkeypatch):
    """Otherwise the child would inherit locked locks of TVM."""

    class EnteredError(Exception):
        pass

    def enter():
        raise EnteredError

    monkeypatch.setattr(forks._gate, "enter", enter)
    function = getattr(te_select.compiler, name)
    with pytest.raises(EnteredError):
        function(*inspect.signature(function).parameters)
