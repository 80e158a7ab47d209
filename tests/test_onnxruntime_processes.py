"""Where by te-select inside ONNX Runtime, in processes of their own."""

from pytest import importorskip, mark

from tests.support import ort_models, script

importorskip("onnxruntime", minversion="1.24")
importorskip("onnx")


IN_A_PROCESS = """
import os, sys, threading
from pathlib import Path
import numpy as np
import te_select
from te_select.selecting.kernels import library
assert te_select.onnxruntime.calls() == 0
import onnxruntime
from tests.support.ort_models import feeds, graph, node, one_where
path = Path(sys.argv[1])
library.whole_file = lambda: path
ours = te_select.onnxruntime
fed = feeds((900, 900), (900, 900), (900, 900))
expected = np.where(*fed.values()).tobytes()

def session(model=None, **given):
    options = onnxruntime.SessionOptions()
    for name, value in given.items():
        setattr(options, name, value)
    ours.register(options)
    return onnxruntime.InferenceSession((model or one_where()).SerializeToString(), options)

def select(made):
    before = ours.calls()
    assert made.run(None, fed)[0].tobytes() == expected
    assert ours.calls() == before + 1
"""


PROGRAMS = {
    "one thread of a session is the only one": """
def threads():
    return sorted(os.listdir("/proc/self/task"))
before = threads()
made = session(intra_op_num_threads=1)
select(made)
assert threads() == before
made = session(intra_op_num_threads=2)
select(made)
names = [Path(f"/proc/self/task/{id}/comm").read_text() for id in threads()]
assert len(names) == len(before) + 1 and "te_select\\n" not in names
""",
    "every version of the operator is taken": """
for version in (9, 15, 16, 17):
    select(session(one_where(opsets={"": version})))
""",
    "many threads register the library once": """
made = []
threads = [threading.Thread(target=lambda: made.append(session())) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
assert len(made) == 8
for each in made: select(each)
""",
    "a library that is none is refused in one line": """
import pytest
path.write_bytes(b"no library")
with pytest.raises(te_select.ToolchainError, match="does not take") as caught:
    session()
assert str(path) in str(caught.value) and "\\n" not in str(caught.value)
""",
    "a library that a program has registered itself is taken": """
onnxruntime.register_execution_provider_library("of the program", str(path))
library.whole_file = None
select(session())
""",
    "calls are counted when the file is gone": "made = session()\npath.unlink()\nselect(made)\n",
    # ONNX Runtime allows it, and its documents do not.
    "a session outlives the library that is unregistered": """
made = session()
onnxruntime.unregister_execution_provider_library(ours.OURS)
assert made.run(None, fed)[0].tobytes() == expected
del made
select(session())
""",
    "a forked child makes sessions of its own": """
select(session(intra_op_num_threads=1))
child = os.fork()
if child == 0:
    select(session(intra_op_num_threads=1))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
    "calls are counted when the library is unregistered": """
made = session()
onnxruntime.unregister_execution_provider_library(ours.OURS)
select(made)
again = session()
select(made)
select(again)
""",
    "options of an earlier registration are refused": """
import pytest
model = one_where().SerializeToString()
options = onnxruntime.SessionOptions()
ours.register(options)
for _ in range(2):
    onnxruntime.unregister_execution_provider_library(ours.OURS)
    others = [onnxruntime.InferenceSession(model) for _ in range(20)]
    newer = onnxruntime.SessionOptions()
    ours.register(newer)
    ours.register(newer)
    with pytest.raises(te_select.ArgumentError, match="was unregistered"):
        ours.register(options)
        onnxruntime.InferenceSession(model, options)
select(onnxruntime.InferenceSession(model, newer))
""",
    "options whose provider was unregistered are refused": """
import pytest
options = onnxruntime.SessionOptions()
ours.register(options)
onnxruntime.unregister_execution_provider_library("TeSelectExecutionProvider")
with pytest.raises(te_select.ArgumentError, match="was unregistered"):
    ours.register(options)
""",
}


@mark.parametrize("case", PROGRAMS)
def test_process_neither_fails_nor_crashes_nor_hangs(tmp_path, case):
    copy = tmp_path / "copy.so"
    copy.write_bytes(ort_models.library().read_bytes())
    done = script(IN_A_PROCESS + PROGRAMS[case], copy, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
