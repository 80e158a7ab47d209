"""Forks while another thread compiles, each case in a process of its own: never a hang."""

import inspect
import sys
from textwrap import dedent

from pytest import approx, importorskip, mark, raises

import te_select
from te_select.base import forks
from te_select.compiler import build
from te_select.compiler.export import export
from te_select.compiler.scheduling import schedule
from te_select.compiler.sources import source
from tests.support import ended, flat_and_scalar
from tests.support.clock import Clock

HELPERS = """
    import os, signal, sys, threading, time
    import te_select
    from te_select import Workload
    from te_select.base import forks

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
        with forks.no_fork_during():
            pass

    def hold(inside, done):
        with forks.no_fork_during():
            inside.set()
            done.wait()

    def holding():
        # Another thread is compiling until the event is set.
        inside, done = threading.Event(), threading.Event()
        threading.Thread(target=hold, args=(inside, done), daemon=True).start()
        inside.wait()
        return done
"""


def run(script, *words, ignored=False, **variables):
    code = dedent(HELPERS) + dedent(script)
    done = ended(sys.executable, "-c", code, *words, timeout=300, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ignored or "ignored" not in done.stderr, done.stderr
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


SCRIPTS = {
    "fork waits for what another thread compiles": """
        done = holding()
        threading.Timer(0.3, done.set).start()
        assert forked(whole) == 0
        assert done.is_set()
        whole()
    """,
    "thread that begins to compile waits until a fork ends": """
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
        fork.join()
        late.join(forks.LONGEST_WAIT / 2)
        assert not late.is_alive()
    """,
    "child does not wait for a fork of its parent": """
        of_another_thread = 0
        forks._gate._forking[of_another_thread] = time.monotonic() + forks.LONGEST_WAIT

        def child():
            signal.alarm(20)
            whole()

        assert forked(child) == 0
    """,
    "thread may fork while it compiles itself": """
        with forks.no_fork_during():
            assert forked(whole) == 0
            whole()
            assert forked(whole) == 0
        assert forked(whole) == 0
    """,
    # The lock of the fetching thread is never released in the child.
    "child forked while kernels are fetched selects": """
        import numpy as np
        from te_select.selecting.kernels import library

        fetching, done = threading.Event(), threading.Event()
        from_cache = library._from_cache

        def slowly(part):
            fetching.set()
            done.wait()
            return from_cache(part)

        library._from_cache = slowly
        cond, x = np.arange(5000) % 3 == 0, np.arange(5000.0)
        call = lambda: te_select.where(cond, x, -x)
        thread = threading.Thread(target=call)
        thread.start()
        assert fetching.wait(100)

        def child():
            library._from_cache = from_cache
            assert (call() == np.where(cond, x, -x)).all()
            assert te_select.where.stats().calls == 1

        assert forked(child) == 0
        done.set()
        thread.join()
    """,
}


# The lock of a module that another thread is importing is never released in a child.
IMPORTS = """
    import importlib.util, importlib.abc
    from te_select.selecting.kernels import library

    importing = threading.Event()
    operands = map(importlib.import_module(sys.argv[2]).asarray, (True, 1.0, 2.0))

    class SlowLoader(importlib.abc.Loader):
        def find_spec(self, name, *_):
            return importlib.util.spec_from_loader(name, self) if name == sys.argv[1] else None

        def exec_module(self, module):
            importing.set()
            time.sleep(0.5)
            raise ImportError(module)

    def call():
        try:
            te_select.where(*operands)
        except ImportError:
            pass

    def child():
        signal.alarm(20)
        try:
            importlib.import_module(sys.argv[1])
        except ImportError:
            pass

    sys.meta_path.insert(0, SlowLoader())
    library._from_cache = library._prebuilt = lambda _: None
    thread = threading.Thread(target=call)
    thread.start()
    assert importing.wait(100)
    assert forked(child) == 0
    thread.join()
"""


@mark.parametrize(
    "module, operands",
    [
        ("te_select.compiler.family_library", "numpy"),
        ("te_select.selecting.torch_operator", "torch"),
    ],
)
def test_fork_waits_for_imports_of_a_first_call(module, operands):
    importorskip(operands)
    run(IMPORTS, module, operands, PYTHONPATH="")  # with torch


@mark.parametrize("case", SCRIPTS)
def test_script_ends_as_it_should(case):
    run(SCRIPTS[case])


def test_fork_waits_a_minute_at_most(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("te_select.base.forks.time", clock)
    gate = forks._Gate()
    gate._inside.add((0, object()))  # another thread, which compiles for ever
    gate.before_fork()
    assert clock.now == approx(60, abs=0.01)


def test_child_whose_parent_saw_nobody_compile_may_compile():
    """Another thread said meanwhile that it begins, and would have taken that back."""
    gate = forks._Gate()
    gate.before_fork()
    gate._inside.add((0, object()))
    gate.after_fork_in_child()
    gate.enter(object())


def test_child_of_a_fork_that_could_not_wait_only_loads(tmp_path):
    path = te_select.export([flat_and_scalar(4)], tmp_path / "k.so")
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


@mark.parametrize("function", [build.kernel, build.build_scheduled, export, schedule, source])
def test_whatever_compiles_holds_off_forks(function, monkeypatch):
    """Otherwise the child would inherit locked locks of TVM."""

    class EnteredError(Exception):
        pass

    def enter(token):
        raise EnteredError

    monkeypatch.setattr("te_select.base.forks._gate.enter", enter)
    with raises(EnteredError):
        function(*inspect.signature(function).parameters)


INTERRUPTED = """
    forks.LONGEST_WAIT = 0.2
    lines = 0

    def interrupt_at(number):
        # Raise KeyboardInterrupt before a line of the gate, as Ctrl-C may.
        def trace(frame, event, argument):
            global lines
            if frame.f_code.co_filename != forks.__file__:
                return None
            if event == "line":
                lines += 1
                if lines == number:
                    raise KeyboardInterrupt
            return trace

        global lines
        lines = 0
        sys.settrace(trace)

    def compiles():
        # Whether any thread may still compile, and fork.
        other = threading.Thread(target=whole, daemon=True)
        other.start()
        other.join(30)
        whole()
        return not other.is_alive() and forked(whole) == 0

    number, busy = 0, sys.argv[1] == "after a wait"
    while lines >= number:
        number += 1
        if busy:
            threading.Timer(0.01, holding().set).start()
        interrupt_at(number)
        try:
            whole() if sys.argv[1] == "compiling" else forked(lambda: None)
        except KeyboardInterrupt:
            pass
        sys.settrace(None)
        assert compiles(), number
    print(number)
"""


@mark.parametrize("way", ["compiling", "a fork at once", "after a wait"])
def test_interrupt_leaves_nobody_waiting(way):
    assert int(run(INTERRUPTED, way, ignored=way != "compiling")) > 5
