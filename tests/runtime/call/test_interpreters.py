"""The extension in interpreters of Python: the main one, which may end, and without the lock."""

import sys
import sysconfig
from itertools import product

from pytest import importorskip, mark

from te_select.runtime.call import _extension as extension
from tests.support import python
from tests.support.cases import the_others_slow

IN_ANOTHER = """
    import sys, textwrap
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters

    inside = textwrap.dedent('''
        import importlib.machinery, importlib.util
        name = "te_select.runtime.call._extension"
        loader = importlib.machinery.ExtensionFileLoader(name, FILE)
        spec = importlib.util.spec_from_loader(name, loader)
        try:
            loader.exec_module(importlib.util.module_from_spec(spec))
        except ImportError as error:
            print("ImportError:", error, flush=True)
        else:
            print("it was imported", flush=True)
    ''').replace("FILE", repr(sys.argv[1]))
    for first in (True, False):
        interpreters.run_string(interpreters.create(), inside)
        if first:
            from te_select.runtime.call import _extension
            assert _extension.counts()[0] == 0
"""


def test_only_the_main_interpreter_has_it_whoever_is_first():
    lines = python(IN_ANOTHER, extension.__file__).splitlines()
    assert len(lines) == 2
    assert all(line.startswith("ImportError:") and "interpreter" in line for line in lines), lines


def test_import_leaves_the_lock_as_it_is():
    is_enabled = getattr(sys, "_is_gil_enabled", lambda: True)
    assert is_enabled() is not bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


CALLS = [*product(("float32", "bfloat16"), ("number", "scalar of NumPy"))]
ENDING = """
    import sys, threading, time
    import numpy as np
    from te_select import Workload, compile
    from te_select.operator.dtypes import numpy_dtype

    kernel = compile(Workload((999,), (999,), (), sys.argv[1]), tuning_logs=False)
    cond = np.ones(999, bool)
    strided = np.ones(2 * 999, numpy_dtype(sys.argv[1]))[::2]
    number = strided[0] if sys.argv[2] == "scalar of NumPy" else 0.5

    def call():
        while True:
            kernel(cond, strided, number)

    for _ in range(4):
        threading.Thread(target=call, daemon=True).start()
    time.sleep(0.2)
"""


@mark.parametrize("dtype, number", the_others_slow(CALLS, [CALLS[0], CALLS[-1]]))
def test_threads_may_call_while_the_interpreter_ends(dtype, number):
    importorskip("ml_dtypes")
    python(ENDING, dtype, number)
