"""Damaged files: each is refused in one line, or read. No crash and no endless loop."""

import gc
import json
import random
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from te_select import ModelError, read_model
from tests.support import hostile
from tests.support.models import corpus
from tests.support.programs import ended

CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from tests.frontends.test_damaged_files import damage_all
damage_all(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
"""


def damaged(data, rng):
    """One way to damage bytes."""
    data = bytearray(data)
    at = rng.randrange(len(data))
    kind = rng.randrange(6)
    if kind == 0:
        del data[at:]
    elif kind == 1:
        for _ in range(rng.choice((1, 2, 8))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        data[at:at] = rng.randbytes(rng.randrange(1, 20))
    elif kind == 3:
        del data[at : at + rng.randrange(1, 40)]
    elif kind == 4:
        data[at:at] = data[at : at + rng.randrange(1, 2000)]
    else:
        for _ in range(6):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 9, 48, 57, 127, 128, 255))
    return bytes(data)


def damaged_graph(data, rng):
    """An ONNX model with changed nodes, attributes and dims."""
    import onnx

    made = onnx.ModelProto()
    made.ParseFromString(data)
    numbers = (0, 1, -1, 2, 7, 64, 2**31, 2**63 - 1, -(2**63), -(2**31))
    ops = [schema.name for schema in onnx.defs.get_all_schemas()]
    for _ in range(rng.choice((1, 3, 12))):
        node = rng.choice(made.graph.node)
        kind = rng.randrange(5)
        if kind == 0:
            node.op_type = rng.choice(ops)
        elif kind == 1 and node.attribute:
            attribute = rng.choice(node.attribute)
            attribute.i = rng.choice(numbers)
            attribute.ints.append(rng.choice(numbers))
        elif kind == 2 and node.input:
            other = rng.choice(made.graph.node)
            node.input[rng.randrange(len(node.input))] = rng.choice([*other.output, ""])
        elif kind == 3 and made.graph.input:
            dims = rng.choice(made.graph.input).type.tensor_type.shape.dim
            dims.add().dim_value = rng.choice(numbers)
        elif made.graph.initializer:
            rng.choice(made.graph.initializer).dims.append(rng.choice(numbers))
    return made.SerializeToString()


_HARMS = {
    ".onnx": damaged_graph,
    ".xml": lambda data, rng: hostile.xml_text(rng, ElementTree.fromstring(data)),
    ".json": lambda data, rng: hostile.json_text(rng, json.loads(data)),
}


def damage_all(source, folder, seed, rounds):
    """Read many damaged copies of a file, in a process of its own, which keeps nothing of them."""
    path = Path(source)
    target = Path(folder) / path.name
    rng = random.Random(seed)
    blocks = []
    for number in range(rounds):
        if number in (50, rounds - 1):  # what is imported and looked up once is there
            gc.collect()
            blocks.append(sys.getallocatedblocks())
        harm = _HARMS[path.suffix] if rng.random() < 0.6 else damaged
        target.write_bytes(harm(path.read_bytes(), rng))
        try:
            read_model(target, expand=rng.random() < 0.2)
        except ModelError as error:
            assert "\n" not in str(error), error
            assert len(str(error)) < 2000, error
    assert blocks[-1] - blocks[0] < 10 * rounds


def own_files(folder):
    """A small file of each format, for runs without the corpus."""
    from onnx import helper

    from tests.support.models import model, tensor
    from tests.support.onednn_graph import select as onednn_select
    from tests.support.openvino_ir import select as openvino_select

    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
        helper.make_node("Softmax", ["y"], ["z"], axis=-1),
        helper.make_node("IsNaN", ["z"], ["c"]),
        helper.make_node("Where", ["c", "y", "z"], ["out"]),
    ]
    made = model(nodes, [tensor("x", "float32", ["batch", 4])])
    (folder / "own.onnx").write_bytes(made.SerializeToString())
    (folder / "own.xml").write_text(openvino_select("?,4", "2,4", "", auto_broadcast="numpy"))
    (folder / "own.json").write_text(json.dumps({"graph": [onednn_select([4], [2, 4], [])]}))
    return sorted(folder.glob("own.*"))


def of_corpus():
    """Some files of the corpus; files of different architectures come first."""
    found = corpus()
    if found is None:
        return []
    folder, index = found
    small = [entry for entry in index if entry["bytes"] < 100_000]
    first = {(entry["kind"], entry["arch"]): folder / entry["file"] for entry in small}
    return list(first.values())


def check(source, folder, seed, rounds):
    done = ended(sys.executable, "-c", CHILD, source, folder, str(seed), str(rounds), timeout=300)
    assert done.returncode == 0, (source, done.returncode, done.stderr[-2000:])


def test_damaged_files_are_refused_in_one_line_or_read(tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("defusedxml")
    (tmp_path / "sources").mkdir()
    for seed, source in enumerate(own_files(tmp_path / "sources")):
        check(source, tmp_path, seed, 150)


@pytest.mark.skipif(not of_corpus(), reason="TE_SELECT_MODELS is not set")
@pytest.mark.parametrize("source", of_corpus(), ids=lambda path: path.name)
def test_damaged_corpus_files_are_read_or_refused_in_one_line(source, tmp_path):
    check(source, tmp_path, 7, 30)
