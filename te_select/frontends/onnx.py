"""Reads ONNX files."""

from collections.abc import Mapping
from dataclasses import replace
from typing import BinaryIO

import onnx
from google.protobuf.message import DecodeError

from te_select.errors import ModelError, caught
from te_select.frontends.onnx_graph.flat import Flat
from te_select.frontends.onnx_graph.inference import inferred
from te_select.frontends.onnx_graph.nodes import opset_of
from te_select.frontends.onnx_graph.sites import sites
from te_select.frontends.onnx_graph.wire import check_parts
from te_select.frontends.status import Site, model_node
from te_select.frontends.tensors import Tensor, join
from te_select.operator.node import ModelNode


def read_onnx(file: BinaryIO) -> list[ModelNode]:
    """Read every Where of an ONNX file.

    Parameters
    ----------
    file
        The file, opened. Data that lies beside it is not read.

    Returns
    -------
    list of ModelNode
        In the order of the file, then those of local functions.

    Raises
    ------
    ModelError
        If the file is not an ONNX model, or contradicts itself.

    Notes
    -----
    ONNX operators, Where-9 and Where-16. ONNX IR specification, "Static tensor shapes": a name is
    one size wherever the inputs of the graph have it.
    """
    model = _parsed(file)
    newest = onnx.defs.onnx_opset_version()
    opset = opset_of(model.opset_import)
    if opset > newest:
        raise ModelError(
            f"the file is of opset {opset}, and onnx {onnx.__version__} knows up to {newest}; "
            "install a newer onnx"
        )
    found = sites(model)
    flat = Flat(model)
    if not found:
        return []
    tensors = inferred(flat.model, flat.names)
    return [_node(site, flat, tensors) for site in found]


def _parsed(file: BinaryIO) -> onnx.ModelProto:
    data = file.read()
    check_parts(data)
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except caught(DecodeError) as error:
        raise ModelError(f"the file is no ONNX model: {error}") from error
    if not model.HasField("graph"):
        raise ModelError("the file is no ONNX model: it holds no graph")
    return model


def _node(site: Site, flat: Flat, tensors: Mapping[str, Tensor]) -> ModelNode:
    def tensor(name: str) -> Tensor:
        return replace(tensors.get(name, Tensor()), constant=name in flat.constant)

    calls = [[tensor(name) for name in call] for call in flat.calls(site.place)]
    if not calls:
        calls = [[Tensor(), Tensor(), Tensor()]]
    operands = [join(each) for each in zip(*calls, strict=True)]
    site = replace(site, conditional=site.place not in flat.surely_run)
    return model_node(site, operands, {name: text for text, name in flat.names.items()})
