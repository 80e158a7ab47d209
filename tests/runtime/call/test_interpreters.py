"""The extension in interpreters of Python: the main one alone, and without the lock."""

import sys
import sysconfig

from te_select.runtime.call import _extension as extension
from tests.support.programs import python

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
