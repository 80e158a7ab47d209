"""Reads OpenVINO IR files."""

from __future__ import annotations

from typing import BinaryIO

from te_select.errors import ModelError
from te_select.frontends.openvino_ir.document import Layer, read_document
from te_select.frontends.openvino_ir.walk import Walker
from te_select.frontends.status import Rule, model_node
from te_select.operator.node import ModelNode
from te_select.operator.systems import OPS

_AXIS = ("auto_broadcast.auto_broadcast_axis", "auto_broadcast_axis", "axis")


def read_openvino(file: BinaryIO, *, expand: bool = False) -> list[ModelNode]:
    """Read every Select of an OpenVINO IR file.

    Parameters
    ----------
    file
        The ``.xml``. The ``.bin`` beside it is not read.

    expand
        Has no meaning for this format.

    Returns
    -------
    list of ModelNode
        In the order of the file; those of a body come after the layer that holds it.

    Raises
    ------
    ModelError
        If the file is not an IR, or contradicts itself.

    Notes
    -----
    OpenVINO operation set, Select-1. For its ``numpy`` mode see `Workload.openvino_select`.
    """
    walker = Walker(read_document(file))
    return [
        model_node(found.site, found.operands, _rule(found.layer, found.site.place), walker.texts)
        for found in walker.walk()
    ]


def _rule(layer: Layer, place: str) -> Rule:
    mode = layer.data.get("auto_broadcast", "numpy").lower()
    if mode not in ("none", "numpy", "pdpd"):
        raise ModelError(
            f"Select {place} has auto_broadcast {mode[:40]!r}; expected none, numpy or pdpd"
        )
    said = next((layer.data[name] for name in _AXIS if name in layer.data), "-1")
    try:
        axis = int(said) if mode == "pdpd" else -1
    except ValueError as error:
        raise ModelError(f"Select {place} has the axis {said[:40]!r}; expected an int") from error
    return Rule(OPS["openvino"], mode, axis)
