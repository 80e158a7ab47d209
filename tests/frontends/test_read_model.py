"""`te_select.read_model` for every format: what is no model, what is too large, and its values."""

import os

from pytest import importorskip, mark, raises

import te_select
from te_select import ModelError, read_model
from tests.support import python
from tests.support.models import model, tensor
from tests.support.onednn_graph import select as onednn_select


def test_it_is_exported_and_needs_no_compiler():
    code = (
        "import sys, te_select; te_select.read_model; te_select.ModelNode; "
        "bad = [m for m in ('tvm', 'onnx', 'defusedxml') if m in sys.modules]; assert not bad, bad"
    )
    python(code)
    assert {"ModelNode", "read_model"} <= set(te_select.__all__)


NAMES = mark.parametrize("name", ["model.onnx", "model.xml", "graph.json", "model"])


@NAMES
def test_file_that_is_not_there(tmp_path, name):
    with raises(ModelError, match="is missing; expected a model file"):
        read_model(tmp_path / name)


@NAMES
def test_what_is_no_regular_file(tmp_path, name):
    path = tmp_path / name
    os.mkfifo(path)
    for odd in (tmp_path, path, "/dev/zero", ""):
        with raises(ModelError, match="is not a regular file; expected a model file"):
            read_model(odd)


def test_format_is_told_by_first_bytes_if_not_by_name(tmp_path):
    importorskip("onnx")
    from onnx import helper

    path = tmp_path / "model.bin"
    for text in ('\ufeff {"graph": []}', '{"graph": []}', '<net name="n" version="11"/>'):
        path.write_text(text, encoding="utf-8")
        assert read_model(path) == []
    path.write_text("[]")
    with raises(ModelError, match="no oneDNN graph"):
        read_model(path)
    where = helper.make_node("Where", ["c", "x", "x"], ["out"])
    inputs = [tensor("c", "bool", [4]), tensor("x", "float32", [4])]
    path.write_bytes(model([where], inputs).SerializeToString())
    assert [node.status for node in read_model(path)] == ["compiled"]


@mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 64,
        b"\xff" * 64,
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
        b"MZ\x90\x00 no model",
        b"\x08\x08\x3a\xff\xff\xff\xff\x0f",
    ],
)
def test_bytes_that_are_no_model(tmp_path, data):
    importorskip("onnx")
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with raises(ModelError, match="no ONNX model"):
        read_model(path)


def test_flood_of_nodes_is_refused_behind_fields_of_every_width(tmp_path):
    """None, or of 1, 4, 8 and any number of bytes, which are no parts of a graph for ONNX."""
    importorskip("onnx")
    fields = (b"", b"\x78\x01", b"\x7d" + b"\xff" * 4, b"\x79" + b"\xff" * 8, b"\x7a\x02\xff\xff")
    for before in fields:
        inside = before + b"\x0a\x00" * 300_001
        length = len(inside)
        varint = bytes([length & 127 | 128, length >> 7 & 127 | 128, length >> 14])
        path = tmp_path / "model.onnx"
        path.write_bytes(b"\x3a" + varint + inside)
        with raises(ModelError, match="more than 300000 nodes"):
            read_model(path)


def test_flood_of_layers_is_refused(tmp_path):
    importorskip("defusedxml")
    layers = "".join(f'<layer id="{i}" type="A"/>' for i in range(100_001))
    path = tmp_path / "model.xml"
    path.write_text(f"<net><layers>{layers}</layers></net>")
    with raises(ModelError, match="more than 100000 layers"):
        read_model(path)


@mark.parametrize("name, most", [("graph.json", 4), ("model.xml", 64), ("model.onnx", 2047)])
def test_file_that_is_too_large_is_refused_unread(tmp_path, name, most):
    path = tmp_path / name
    path.touch()
    os.truncate(path, most + 1 << 20)
    with raises(ModelError, match=f"larger than {most} MiB"):
        read_model(path)


def test_file_larger_than_the_memory_is_an_error_of_the_model(tmp_path, monkeypatch):
    def out_of_memory(file):
        raise MemoryError

    monkeypatch.setattr("te_select.frontends.onednn_graph.read_onednn", out_of_memory)
    (tmp_path / "graph.json").touch()
    with raises(ModelError, match="larger than the memory"):
        read_model(tmp_path / "graph.json")


def test_nodes_are_values(tmp_path):
    import json

    path = tmp_path / "graph.json"
    path.write_text(json.dumps({"graph": [onednn_select([4], [4], [])]}))
    (one,), (two,) = read_model(path), read_model(path)
    assert one == two
    assert hash(one) == hash(two)
    with raises(AttributeError):
        one.status = "refused"
