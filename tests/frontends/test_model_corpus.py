"""The reference corpus of model files: what the reader says against what its index saw at run time.

``TE_SELECT_MODELS`` names its folder. Of the files that were kept aside to check the reader none is
there, so nothing here may be special to a file.
"""

import functools

import pytest

from te_select import read_model
from tests.support.models import OF_CORPUS, corpus

pytestmark = OF_CORPUS
FOLDER, INDEX = corpus()


def of_kind(kind):
    files = [entry for entry in INDEX if entry["kind"] == kind]
    return pytest.mark.parametrize("entry", files, ids=lambda entry: entry["file"])


@functools.cache
def nodes_of(file):
    return read_model(FOLDER / file)


def read(entry):
    return nodes_of(entry["file"])


def agrees(shape, seen, names):
    """Whether a shape is that of a run, in which each name has one size."""
    if shape is None:
        return True
    return len(shape) == len(seen) and all(
        dim == size if isinstance(dim, int) else names.setdefault(dim, size) == size
        for dim, size in zip(shape, seen, strict=True)
        if dim != "?"
    )


def shapes_of(node):
    return (node.cond_shape, node.then_shape, node.else_shape)


def nodes_and_rows(entry, place, producer):
    """The nodes of a file beside the rows of the index, of which these functions tell."""
    nodes = read(entry)
    rows = entry["nodes"]
    assert [node.place for node in nodes] == list(map(place, rows))
    for node, known in zip(nodes, rows, strict=True):
        assert (node.workload is not None) == (node.status == "compiled") == (not node.reason)
        assert node.name == known["name"]
        assert node.cond_producer in producer(known["cond_producer"])
        yield node, known


@of_kind("onnx")
def test_onnx_file_is_read_as_it_ran(entry):
    for node, known in nodes_and_rows(entry, lambda row: row["id"], lambda by: (by["op"],)):
        assert not known["shape_arithmetic"] or node.status in ("shape", "folded"), node
        for run in entry["runs"]:
            for seen in (run["nodes"] or {}).get(node.place, ()):
                names = {}
                for shape, operand in zip(shapes_of(node), seen["inputs"], strict=True):
                    assert agrees(shape, operand["shape"], names), (node, seen)
                assert seen["inputs"][1]["elem"] == node.dtype
                given = {name: run["sizes"].get(name, size) for name, size in names.items()}
                assert names == given, node


IN_IR = {"Parameter": ("graph input", "body input"), "Const": ("initializer",)}


@of_kind("ir")
def test_ir_file_is_read_as_openvino_sees_it(entry):
    for node, known in nodes_and_rows(
        entry,
        lambda row: f"{row['path']}#{row['id']}",
        lambda by: IN_IR.get(by["type"], (by["type"],)),
    ):
        if node.status != "refused":
            assert node.dtype == known["output"]["elem"]
        for shape, port in zip(shapes_of(node), known["inputs"], strict=True):
            assert [dim if isinstance(dim, int) else -1 for dim in shape or ()] == port["dims"]


@of_kind("onednn")
def test_onednn_file_is_read_as_it_says(entry):
    def place(row):
        return f"graph#{row['index']}"

    def producer(by):
        return (by["op"],)

    for node, known in nodes_and_rows(entry, place, producer):
        for shape, said in zip(shapes_of(node), known["inputs"], strict=True):
            if said["shape"] and min(said["shape"]) >= 0:
                assert list(shape) == said["shape"]


def test_many_nodes_have_a_kernel_of_their_own():
    """ONNX knows all sizes of 89 of the 235 nodes that are no arithmetic of shapes."""
    statuses = [node.status for entry in INDEX if entry["kind"] == "onnx" for node in read(entry)]
    built = [status for status in statuses if status not in ("shape", "folded")]
    assert built.count("compiled") > 0.33 * len(built)
