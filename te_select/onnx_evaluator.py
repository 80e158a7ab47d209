"""ONNX's reference evaluator with Where by te-select, to check a node inside its model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from te_select.numpy_where import where
from te_select.onnx_model import loaded

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnx.reference import ReferenceEvaluator


def onnx_reference(model: ModelProto | bytes | str | os.PathLike[str]) -> ReferenceEvaluator:
    """Make an evaluator of an ONNX model whose Where nodes run kernels of te-select.

    Parameters
    ----------
    model
        The model, its bytes, or its path. External data beside the file is read, too.

    Returns
    -------
    onnx.reference.ReferenceEvaluator
        ``run(None, {"input": array})`` computes the outputs. Where nodes in bodies and local
        functions run kernels, too. NumPy selects what `te_select.where` leaves to it, such as
        strings.

    Raises
    ------
    ArgumentError
        If it is none of these.
    ModelError
        If there is no such file, or it is not a model.
    ToolchainError
        If the onnx package is missing.

    Notes
    -----
    ONNX operators, Where-9 and Where-16; ``onnx.reference``, "new_ops".
    """
    model = loaded(model, "onnx_reference")
    evaluator: ReferenceEvaluator = _evaluator()(model)
    return evaluator


def _evaluator() -> Any:
    """The class of evaluators; it is made when it is needed, because onnx is optional."""
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415
    from onnx.reference.op_run import OpRun  # noqa: PLC0415

    class Where(OpRun):  # ONNX finds the class by the name of the operator
        """Where by kernels of te-select."""

        op_domain = ""

        def _run(self, condition: Any, x: Any, y: Any) -> tuple[Any]:
            return (where(condition, x, y).astype(x.dtype, copy=False),)

    class SelectEvaluator(ReferenceEvaluator):
        """A reference evaluator; ONNX makes one more for every body and function."""

        def __init__(self, proto: Any, **given: Any) -> None:
            super().__init__(proto, **(given | {"new_ops": [Where]}))

    return SelectEvaluator
