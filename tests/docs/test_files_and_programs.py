"""The page about files and programs: what a process does is in its tables."""

import json
import re

import pytest

from te_select.backends.programs import _C_COMPILERS
from tests.support import python, text_of
from tests.support.cases import the_others_slow

PAGE = text_of("docs/files-and-programs.md")
WATCH = """
import atexit, json, os, sys
programs, written = set(), set()
def watch(event, given):
    if event == "subprocess.Popen":
        programs.add(os.path.basename(given[0]))
    elif event == "open" and isinstance(given[0], str) and given[2] & (os.O_WRONLY | os.O_RDWR):
        written.add(os.path.abspath(given[0]))
sys.addaudithook(watch)
sys.dont_write_bytecode = True
atexit.register(lambda: print(json.dumps([sorted(programs), sorted(written)])))
import te_select
"""
WORK = {
    "compile": "te_select.compile(te_select.Workload((4, 1), (4, 8), ()))",
    "export": "te_select.export([te_select.Workload((4,), (4,), ())], 'given/a.so', static=True)",
    "where": "import numpy as np; te_select.where(np.ones(9, bool), np.ones(9), 2.0)",
    "tune": "te_select.tune(te_select.Workload((9,), (9,), ()), trials=1, profile=True)",
}


def test_c_compilers_are_listed_as_they_are_tried():
    *others, last = (f"`{name}`" for name in _C_COMPILERS)
    for page in (PAGE, text_of("README.md")):
        assert f"{', '.join(others)} or {last}" in page


@pytest.mark.parametrize("work", the_others_slow(WORK, ["compile", "where"]))
def test_what_a_process_writes_and_starts_is_on_the_page(tmp_path, work):
    names = {"XDG_CACHE_HOME": "cache", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config"}
    variables = {name: str(tmp_path / folder) for name, folder in names.items()}
    (tmp_path / "tmp").mkdir()
    (tmp_path / "given").mkdir()
    variables |= {"TMPDIR": str(tmp_path / "tmp"), "TE_SELECT_CACHE_DIR": ""}
    code = f"import os; os.chdir({str(tmp_path)!r})\n{WATCH}{WORK[work]}"
    programs, written = json.loads(python(code, **variables).splitlines()[-1])
    assert programs and written
    listed = {*re.findall(r"`([\w-]+)`", PAGE.partition("## Programs")[2]), "python", "python3"}
    assert {re.sub(r"[\d.]+$", "", name) for name in programs} <= listed
    roots = [f"{tmp_path}/{name}/te-select/" for name in (*names.values(), "none")]
    roots += [
        f"{tmp_path}/given/",
        f"{tmp_path}/tmp/.te_select-",
        "/dev/",
        "/memfd:",
        "/proc/self/",
    ]
    # Python itself tries by a file of this name whether it may write there.
    written = [path for path in written if not re.fullmatch(r".*/tmp/[a-z0-9_]{8}", path)]
    assert [path for path in written if not path.startswith(tuple(roots))] == []
