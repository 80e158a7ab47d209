"""Reads ONNX files."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

import onnx
from google.protobuf.message import DecodeError

from te_select.errors import ModelError
from te_select.frontends.onnx_graph.interpreter import Interpreter
from te_select.frontends.onnx_graph.scopes import opsets_of
from te_select.frontends.onnx_graph.sites import sites
from te_select.frontends.onnx_graph.wire import check_parts
from te_select.frontends.symbolic.status import Judge, Rule, Site, one_view
from te_select.operator.node import ModelNode
from te_select.operator.systems import system


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

    Notes
    -----
    ONNX operators, Where-9 and Where-16. ONNX IR specification, "Static tensor shapes": a name is
    one size wherever the inputs of the graph have it.
    """
    model = _parsed(file)
    newest = onnx.defs.onnx_opset_version()
    opset = opsets_of(model.opset_import).get("", 0)
    if opset > newest:
        raise ModelError(
            f"the file is of opset {opset}, and onnx {onnx.__version__} knows up to {newest}; "
            "install a newer onnx"
        )
    found = sites(model)
    walk = Interpreter(model, expand=expand)
    walk.run()
    judge = Judge(walk.names)
    return [_node(site, walk, judge) for site in (*found, *walk.inside_operators)]


def _parsed(file: BinaryIO) -> onnx.ModelProto:
    data = file.read()
    check_parts(data)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise ModelError(f"the file is no ONNX model: {error}") from error
    if not model.HasField("graph"):
        raise ModelError("the file is no ONNX model: it holds no graph")
    return model


def _node(site: Site, walk: Interpreter, judge: Judge) -> ModelNode:
    of = system(f"onnx.{site.op}")
    operands = one_view(walk.views(site.place), walk.sizes)
    site = replace(site, conditional=site.place not in walk.surely_run)
    return judge.node(site, operands, Rule(of, of.mode))
