"""Reads ONNX files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from te_select.errors import ModelError, ToolchainError
from te_select.frontends.symbolic.status import Judge, Rule, Site, one_view
from te_select.operator.node import ModelNode

if TYPE_CHECKING:
    from onnx import ModelProto

    from te_select.frontends.onnx_graph.interpreter import Interpreter


def read_onnx(file: BinaryIO, *, expand: bool) -> list[ModelNode]:
    """Read every Where of an ONNX file.

    Parameters
    ----------
    file
        The file, opened. Data that lies beside it is not read.
    expand
        Whether to list the Where nodes in the bodies of operators that ONNX defines as functions,
        too.

    Returns
    -------
    list of ModelNode
        In the order of the file, then those of local functions, then those inside of operators.

    Raises
    ------
    ModelError
        If the file is not an ONNX model, or contradicts itself.
    ToolchainError
        If the onnx package is missing.

    Notes
    -----
    ONNX operators, Where-9 and Where-16. ONNX IR specification, "Static tensor shapes": a name is
    one size wherever the inputs of the graph have it.
    """
    try:
        import onnx  # noqa: PLC0415 - optional, and slow to import
    except ModuleNotFoundError as error:
        raise ToolchainError(
            "ONNX files are read with the onnx package; pip install 'te-select[models]'"
        ) from error
    from te_select.frontends.onnx_graph import interpreter  # noqa: PLC0415
    from te_select.frontends.onnx_graph.scopes import opsets_of  # noqa: PLC0415
    from te_select.frontends.onnx_graph.sites import sites  # noqa: PLC0415

    model = _parsed(file)
    newest = onnx.defs.onnx_opset_version()
    opset = opsets_of(model.opset_import).get("", 0)
    if opset > newest:
        raise ModelError(
            f"the file is of opset {opset}, and onnx {onnx.__version__} knows up to {newest}; "
            "install a newer onnx"
        )
    found = sites(model)
    walk = interpreter.Interpreter(model, expand=expand)
    walk.run()
    judge = Judge(walk.names)
    return [_node(site, walk, judge) for site in (*found, *walk.inside_operators)]


def _parsed(file: BinaryIO) -> ModelProto:
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from onnx import ModelProto  # noqa: PLC0415

    from te_select.frontends.onnx_graph.wire import check_parts  # noqa: PLC0415

    data = file.read()
    check_parts(data)
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise ModelError(f"the file is no ONNX model: {error}") from error
    if not model.HasField("graph"):
        raise ModelError("the file is no ONNX model: it holds no graph")
    return model


def _node(site: Site, walk: Interpreter, judge: Judge) -> ModelNode:
    opset = int(site.op.rpartition("-")[2])
    operands = one_view(walk.views(site.place), walk.sizes)
    site = replace(site, conditional=site.place not in walk.surely_run)
    return judge.node(site, operands, Rule("onnx_where", opset=opset))
