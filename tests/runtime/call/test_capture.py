"""What a program asks for is written when it ends, and adds up."""

import itertools
import os
import sys
import textwrap
from json import dumps, loads
from pathlib import Path
from unittest.mock import MagicMock, Mock

import numpy as np
import tvm_ffi
from pytest import approx, fixture, mark

from te_select import export
from te_select.runtime.call import capture
from tests.support import ended, flat, masked_rows, python, script

KERNEL = masked_rows(64, 500)
NAMED = flat("n", "int16")
START = """
import os, shutil, sys
import numpy as np
import te_select
path, fixed, named = sys.argv[1:]
library = te_select.load(path)
kernel, named = library[fixed], library[named]
cond, x = np.ones((64, 1), bool), np.ones((64, 500), "f4")
def ask(times):
    for _ in range(times):
        kernel(cond, x, 0.5)
        te_select.where(x > 0, x, x)
"""


@fixture(autouse=True)
def own_cache(family):
    """Kernels that are built."""


@fixture
def seen_of(tmp_path):
    """Runs a program with two kernels; what is written when it ends."""
    path = export([KERNEL, NAMED], tmp_path / "lib.so", tuning_logs=False)
    words = (path, KERNEL.name, NAMED.name)
    seen = tmp_path / "seen.json"

    def once(code):
        python(START + textwrap.dedent(code), *words, TE_SELECT_CAPTURE=seen)
        found = loads(seen.read_text())
        return found

    return once


def key(workload):
    return dumps(workload.to_json(), sort_keys=True)


def test_calls_are_counted_and_conds_are_sampled(seen_of):
    seen = seen_of("""
        rng = np.random.default_rng(0)
        rows = rng.random((64, 1)) < 0.3
        sizes = (100, 2000)
        if child := os.fork():
            assert os.waitpid(child, 0)[1] == 0
            sizes = (500,)
            for _ in range(900):
                kernel(rows, x, 0.0)
        for n in sizes:
            cond = np.repeat(rng.random(n // 10) < 0.5, 10)
            for _ in range(300):
                named(cond, np.ones(n, np.int16), np.ones(n, np.int16))
    """)["kernels"]
    assert {each: seen[each]["calls"] for each in seen} == {key(KERNEL): 900, key(NAMED): 900}
    fixed, named = seen[key(KERNEL)], seen[key(NAMED)]
    assert fixed["true"] / fixed["conds"] == approx(0.3, abs=0.15)
    assert named["sizes"] == {"n": [100, 2000]}
    assert named["conds"] / named["runs"] > 10
    assert 0 < fixed["seconds"] < 1 and named["seconds"] > 0


def test_conds_of_every_library_with_dlpack_are_looked_at():
    seen = dict(capture._NONE, looks=0)
    cond = np.array([True, False, True])
    for given in (cond, tvm_ffi.from_dlpack(cond)):
        capture._note(seen, 1e-3, given, 1)
    assert (seen["conds"], seen["true"], seen["runs"]) == (6, 4, 6)


@mark.parametrize("seconds, apart", [(1e-3, 64), (4e-7, 250)])
def test_short_calls_are_timed_less_often(monkeypatch, seconds, apart):
    kernel = MagicMock(workload=NAMED, seen=None)
    now = itertools.chain([0.0], itertools.count(9, seconds))  # the first call builds
    clock = Mock(perf_counter=lambda: next(now))
    for name, value in {"_kernels": {}, "_at_exit": lambda: None, "time": clock}.items():
        monkeypatch.setattr(capture, name, value)
    calls = []
    for _ in range(2000):
        capture.sampled(kernel, *[np.ones(9)] * 3, None)
        calls.append(kernel.seen["calls"])
        if len(calls) == 1:
            assert kernel.seen["spent"] == 9  # what is known of a kernel that is called once
    assert (calls[-1] - calls[999]) / 1000 == approx(apart, rel=0.1)
    assert (kernel.seen["looks"], kernel.seen["sampled"]) == (2000, 1999)
    assert kernel.seen["spent"] == approx(1999 * seconds)


def test_forked_child_writes_what_it_has_asked_for_itself(seen_of):
    found = seen_of("""
        ask(9)
        if child := os.fork():
            os.waitpid(child, 0)
        else:
            ask(2)
    """)
    assert [each["calls"] for each in found["kernels"].values()] == [11]
    assert [each["elements"] for each in found["where"].values()] == [11 * 64 * 500]


def test_samples_of_the_parent_are_not_its_childs(seen_of):
    seen = seen_of("""
        ask(9)
        if child := os.fork():
            os._exit(os.waitpid(child, 0)[1])
        cond[:], x[:] = False, -1.0
        ask(99)
    """)
    for found in (*seen["kernels"].values(), *seen["where"].values()):
        assert found["conds"] and not found["true"]


@mark.parametrize("kind", ["pipe", "device", "link"])
def test_what_is_no_file_stays_and_is_not_waited_for(tmp_path, kind):
    seen = tmp_path / "seen.json"
    if kind == "pipe":
        os.mkfifo(seen)
    else:
        seen.symlink_to("/dev/full" if kind == "device" else "own.json")
    code = "import numpy as np, te_select\nte_select.where(np.ones(9, bool), np.ones(9), 0.0)"
    done = script(code, TE_SELECT_CAPTURE=seen)
    assert done.returncode == 0
    assert seen.is_fifo() if kind == "pipe" else seen.is_symlink()
    if kind == "link":
        assert loads((tmp_path / "own.json").read_text())["where"]
    else:
        assert "is not a regular file; expected what others wrote" in done.stderr
    assert Path("/dev/full").is_char_device()


def test_calls_of_two_kernels_of_one_workload_add_up(seen_of):
    found = seen_of("""
        two = te_select.load(shutil.copy(path, path.replace("lib.so", "two.so")))[fixed]
        for _ in range(101):
            kernel(cond, x, 0.5)
            two(cond, x, 0.5)
        del kernel, library
        for _ in range(7):
            two(cond, x, 0.5)
    """)
    assert found["kernels"][key(KERNEL)]["calls"] == 209


def test_seconds_of_where_are_those_of_calls_not_of_builds(seen_of):
    """A kernel of rows is built late: by the 4th call, which is timed."""
    seen = seen_of("""
        os.environ["TE_SELECT_CACHE_DIR"] = path + ".cold"
        many = np.ones((209716, 5), "f4")
        for _ in range(30):
            te_select.where(many[:, :1] > 0, many, 0)
        assert len(os.listdir(path + ".cold")) >= 2
    """)
    assert seen["where"] and sum(each["seconds"] for each in seen["where"].values()) < 1.5


def test_kernels_of_where_are_counted_and_runs_add_up(seen_of):
    program = """
        kernel(cond, x, 0.0)
        many, y = np.random.default_rng(0).random(1024) < 0.9, np.ones(1024, np.float32)
        for _ in range(1500):
            te_select.where(many, y, 0.0)
            te_select.where(many, y, y)
    """
    once, twice = seen_of(program), seen_of(program)
    assert {name: each["elements"] for name, each in once["where"].items()} == {
        "w4 n:ct": 1500 * 1024,
        "w4 n:cte": 1500 * 1024,
    }
    for seen in once["where"].values():
        assert seen["true"] / seen["conds"] == approx(0.9, abs=0.05)
        assert seen["seconds"] > 0
    assert {each["elements"] for each in twice["where"].values()} == {3000 * 1024}
    assert twice["kernels"][key(KERNEL)]["calls"] == 2
    assert once["kernels"][key(KERNEL)]["seconds"] > 0


@mark.parametrize(
    "name, text, why",
    [
        ("none/seen.json", None, "FileNotFoundError"),
        ("seen.json", "{", "JSONDecodeError"),
        ("seen.json", "[" * 200_000, "RecursionError"),
        (".", None, "is not a regular file"),
    ],
)
def test_file_that_takes_nothing_is_one_warning_at_the_end(tmp_path, name, text, why):
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    code = "import numpy as np, os\nfrom te_select import where\nos.chdir('/')\n"
    code += "where(np.arange(9) > 3, np.ones(9), 0)\nprint('done')"
    done = script(code, cwd=tmp_path, TE_SELECT_CAPTURE=name)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "to which nothing could be added" in done.stderr and why in done.stderr
    assert "Traceback" not in done.stderr
    assert text is None or file.read_text() == text


def test_capture_is_that_of_the_start(seen_of, tmp_path):
    """The program clears its environment and changes folders before its first call."""
    code = "kept = {each: os.environ[each] for each in ('PATH', 'TE_SELECT_CACHE_DIR')}\n"
    code += "os.environ.clear()\nos.environ.update(kept)\nos.chdir('/')\nask(3)\n"
    assert seen_of(code)["kernels"][key(KERNEL)]["calls"] == 3
    (tmp_path / "seen.json").unlink()
    words = (tmp_path / "lib.so", KERNEL.name, NAMED.name)
    program = ("-c", "import os\nos.chdir(os.sys.argv.pop())\n" + START + code)
    python_of = ended(sys.executable, *program, *words, tmp_path, TE_SELECT_CAPTURE="seen.json")
    assert (python_of.returncode, python_of.stderr) == (0, "")
    assert loads((tmp_path / "seen.json").read_text())["kernels"]


@mark.parametrize("before", [0, 2])
@mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_are_captured(seen_of, tmp_path, method, before):
    (tmp_path / "asking.py").write_text(START)
    seen = seen_of(f"""
        import multiprocessing
        sys.path.insert(0, {str(tmp_path)!r})
        import asking
        if __name__ == "__main__":
            asking.ask({before})
            context = multiprocessing.get_context({method!r})
            workers = [context.Process(target=asking.ask, args=(3,)) for _ in range(2)]
            for each in workers: each.start()
            for each in workers: each.join()
            assert [each.exitcode for each in workers] == [0, 0]
    """)
    assert seen["kernels"][key(KERNEL)]["calls"] == before + 2 * 3
    assert seen["where"]
