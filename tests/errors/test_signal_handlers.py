"""Exceptions of signal handlers pass through te-select, from every line, unchanged."""

import ast
import builtins
import gc
import json
import linecache
import pickle
import signal
import sys
from pathlib import Path
from signal import SIGALRM

import numpy as np
from pytest import fixture, importorskip, mark

import te_select
from te_select import where
from tests.support import flat, flat_and_scalar, python
from tests.support.runtime_standin import kernel

SOURCES = Path(te_select.__file__).parent
N = 64
W = flat(N)
EVERY_LINE, SOME_LINES = 1000, 40  # lines of a call; of files there are more
COND = np.arange(N) % 3 == 0
X = np.arange(N, dtype="f4")
Y = np.ones(N, "f4")
STRIDED = np.zeros(2 * N, "f4")[::2]
KINDS = (RuntimeError, TypeError, ValueError, OSError, OverflowError, BufferError)
KINDS += (FloatingPointError, KeyError, AttributeError, MemoryError)
# An import in Python loses errors of handlers itself, and a function may be gone before it.
PYTHONS_OWN = (ImportError, ModuleNotFoundError)


@fixture(autouse=True)
def _errstate():
    """Restore NumPy's: an exception on the line that leaves a with block keeps what it has set."""
    with np.errstate():
        yield


@fixture(autouse=True)
def own_cache(family):
    """Kernels that are built."""


@fixture(autouse=True)
def no_collector():
    gc.disable()  # errors in what the collector calls are lost
    yield
    gc.enable()


def interrupted(call, line, kind):
    """Run a call in which a handler raises at a line; how many lines ran, and what came instead."""
    made = []
    begun = set()
    lines = 0

    def handle(_number, _frame):
        made.append(kind("of a handler"))
        raise made[0]

    def trace(frame, event, _argument):
        nonlocal lines
        if not frame.f_code.co_filename.startswith(str(SOURCES)):
            return None
        if event == "line" and not made and not leaves_block(frame):
            lines += 1
            if lines - 1 == line:
                signal.raise_signal(SIGALRM)
        return trace

    def leaves_block(frame):
        """Python runs no handler there, as it does after calls; the lock would stay locked."""
        place = id(frame), frame.f_lineno
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        is_left = place in begun and text.lstrip().startswith("with ")
        begun.add(place)
        return is_left

    before = signal.signal(SIGALRM, handle)
    tracer = sys.gettrace()
    found = None
    try:
        sys.settrace(trace)
        call()
    except Exception as error:
        found = error
    finally:
        sys.settrace(tracer)
        signal.signal(SIGALRM, before)
    return lines, None if [found] == made else found or "nothing"


def assert_passes(call, most=EVERY_LINE):
    call()  # imports what it needs
    count, _ = interrupted(call, None, RuntimeError)
    assert count
    for line in range(0, count, -(-count // most)):
        for kind in KINDS:
            _, other = interrupted(call, line, kind)
            assert other is None, f"{kind.__name__} of a handler at line {line} became {other!r}"


CALLS = {  # of two kernels and a file
    "kernel": (EVERY_LINE, lambda k, _, path: k(COND, X, Y)),
    "kernel of strided arrays": (EVERY_LINE, lambda k, _, path: k(COND, STRIDED, Y)),
    "kernel with a number": (EVERY_LINE, lambda _, scalar, path: scalar(COND, X, 1.5)),
    "compile": (SOME_LINES, lambda *_: te_select.compile(W)),
    "export": (SOME_LINES, lambda k, _, path: k.export(path)),
    "load": (SOME_LINES, lambda k, _, path: te_select.load(path)),
    "pickle": (SOME_LINES, lambda k, _, path: pickle.loads(pickle.dumps(k))),
    "read_model": (
        SOME_LINES,
        lambda _, __, path: te_select.read_model(path.with_name("model.json")),
    ),
}


@mark.parametrize("name", CALLS)
def test_exception_of_a_handler_passes_through_a_call(tmp_path, name):
    most, call = CALLS[name]
    k, scalar = kernel(W), kernel(flat_and_scalar(N))
    path = k.export(tmp_path / "kernel.so")
    graph = {"graph": [{"kind": "Add", "attrs": {"axis": {"value": 1}}}]}
    path.with_name("model.json").write_text(json.dumps(graph))
    assert_passes(lambda: call(k, scalar, path), most)


@mark.parametrize("recorded", [False, True])
def test_exception_of_a_handler_passes_through_calls_of_torch(recorded):
    torch = importorskip("torch")
    from te_select.torch import where as of_torch

    cond, x, y = map(torch.from_numpy, (COND, X, Y))
    out = torch.empty_like(x)
    x.requires_grad_(recorded)
    assert_passes(lambda: of_torch(cond, x, y))
    assert_passes(lambda: of_torch(cond, x, 2.5))
    if not recorded:
        assert_passes(lambda: of_torch(cond, x, y, out=out))
        assert_passes(lambda: of_torch(cond, x, y.double()))
        assert_passes(lambda: where(cond, x, y))


def test_numpy_ma_is_not_imported_by_a_call():
    code = """
        import sys, numpy as np, te_select
        from tests.support.runtime_standin import kernel
        k = kernel(te_select.Workload((4,), (4,), (4,)))
        sys.modules.pop("numpy.ma", None); vars(np).pop("ma", None)
        k(np.ones(4, bool), np.ones(8, "f4")[::2], np.ones(4, "f4"))
        print("numpy.ma" in sys.modules)
    """
    assert python(code, cwd=SOURCES.parent) == "False\n"


def is_built_in(name):
    kind = getattr(builtins, name.id, None) if isinstance(name, ast.Name) else None
    return isinstance(kind, type) and issubclass(kind, Exception) and kind not in PYTHONS_OWN


def named_in(node):
    """The classes that a handler or a `contextlib.suppress` names itself."""
    if isinstance(node, ast.ExceptHandler):
        if node.type is None:
            return []
        return node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    is_suppress = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return node.args if is_suppress and node.func.attr == "suppress" else []


# A process of these ends with the first exception of a handler; the others are under way.
LEFT = {"bench", "cli", "timing", "tuning"}
PATHS = [
    path
    for path in SOURCES.rglob("*.py")
    if path.relative_to(SOURCES).parts[0] not in LEFT and path.name != "child.py"  # of the readers
]


@mark.parametrize("path", PATHS, ids=lambda path: path.relative_to(SOURCES).as_posix())
def test_pythons_exceptions_are_caught_by_caught_alone(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [ast.unparse(each) for each in named_in(node) if is_built_in(each)]
        assert not names, f"line {node.lineno}: except caught({', '.join(names)})"
