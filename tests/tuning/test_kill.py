"""A session of a model that is killed again and again ends with the records of one that is not."""

import json
import signal
import subprocess
import sys

import pytest

from te_select.backends.targets import resolve
from te_select.records import log
from tests.support import models
from tests.support.cli import run_json
from tests.support.programs import output
from tests.support.tuning_records import unfinished

pytest.importorskip("onnx")
pytestmark = pytest.mark.slow

TARGET = resolve("native").name


@pytest.fixture
def model(tmp_path, nodes):
    """Each node has another size, so each has a record of its own."""
    from onnx.helper import make_node

    every, inputs = [], []
    for k in range(nodes):
        shape = [k + 2, 300 + 7 * k]
        operands = {f"c{k}": "bool", f"x{k}": "float32", f"y{k}": "float32"}
        inputs += [models.tensor(name, dtype, shape) for name, dtype in operands.items()]
        every.append(make_node("Where", list(operands), [f"o{k}"]))
    path = tmp_path / "many.onnx"
    path.write_bytes(models.model(every, inputs).SerializeToString())
    return path


def found(folder):
    """What a session leaves: the records with their trials, and the journals that are not ended."""
    entries = log.read(folder / TARGET).entries
    left = unfinished(folder / TARGET / "trials")
    return {entry.key: entry.session["trials"] for entry in entries}, left


@pytest.mark.parametrize(("nodes", "kills"), [(20, 4), pytest.param(40, 5, marks=pytest.mark.long)])
def test_killed_session_ends_with_the_records_of_a_whole_one(model, nodes, kills, tmp_path):
    flags = ["--no-profile", "--model", str(model), "--trials", "2", "--all"]
    flags += ["--tuning-logs"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    document = run_json("tune", *flags, whole)
    assert len(document["workloads"]) == nodes
    command = [sys.executable, "-c", "from te_select.cli import main; main()", "tune", *flags]
    for number in range(kills):
        with subprocess.Popen(
            [*command, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            # The first is killed among the defaults, the others among the records.
            for _ in range(0 if number == 0 else 3):
                assert process.stderr.readline()
            if number == 0:
                trials = killed / TARGET / "trials"
                while not trials.is_dir() or len([*trials.iterdir()]) < nodes // 2:
                    assert process.poll() is None
            process.send_signal(signal.SIGKILL)
    assert 0 < len(found(killed)[0]) < nodes
    sure = [entry for entry in log.read(killed / TARGET).entries if not entry.unsure]
    last = json.loads(output(*command, killed, "--json", timeout=3600))
    assert sum(not each["fresh"] for each in last["workloads"]) == len(sure)
    assert found(killed) == found(whole)
    assert found(whole)[1] == []
