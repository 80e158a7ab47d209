"""Damaged ONNX files: each is refused in one line, or read. No crash and no endless loop.

Those of OpenVINO and oneDNN are in ``benchmarks/soak/readers.py``.
"""

import random
from pathlib import Path

import pytest

from te_select import ModelError, read_model
from tests.support import script
from tests.support.damaged_bytes import damaged
from tests.support.models import model, tensor

CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from tests.frontends.test_damaged_files import damage_all
damage_all(sys.argv[1])
"""


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


def damage_all(source):
    """Read many damaged copies of a file, in a process of its own."""
    path = Path(source)
    target = path.with_name("damaged.onnx")
    data = path.read_bytes()
    rng = random.Random(0)
    for _ in range(150):
        target.write_bytes(damaged_graph(data, rng) if rng.random() < 0.6 else damaged(rng, data))
        try:
            read_model(target)
        except ModelError as error:
            assert "\n" not in str(error), error
            assert len(str(error)) < 2000, error


def test_damaged_files_are_refused_in_one_line_or_read(tmp_path):
    helper = pytest.importorskip("onnx").helper
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
        helper.make_node("Softmax", ["y"], ["z"], axis=-1),
        helper.make_node("IsNaN", ["z"], ["c"]),
        helper.make_node("Where", ["c", "y", "z"], ["out"]),
    ]
    made = model(nodes, [tensor("x", "float32", ["batch", 4])])
    (tmp_path / "own.onnx").write_bytes(made.SerializeToString())
    done = script(CHILD, tmp_path / "own.onnx", timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
