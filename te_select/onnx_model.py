"""ONNX models as callers have them: as a file, as bytes, or parsed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from te_select.errors import ArgumentError, ModelError, ToolchainError
from te_select.operator.broadcast import shown
from te_select.runtime.artifact import files

if TYPE_CHECKING:
    from onnx import ModelProto


def loaded(model: ModelProto | bytes | str | os.PathLike[str], function: str) -> ModelProto:
    """Parse a model.

    Parameters
    ----------
    model
        The model, its bytes, or its path. External data beside the file is read, too.
    function
        The name of the public function that was given the model, for a message.

    Returns
    -------
    onnx.ModelProto
        The model itself if it was parsed before.

    Raises
    ------
    ArgumentError
        If it is none of these.
    ModelError
        If there is no such file, or it is not a model.
    ToolchainError
        If the onnx package is missing.
    """
    try:
        import onnx  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        raise ToolchainError(
            f"{function} needs the onnx package; pip install 'te-select[models]'"
        ) from error
    if isinstance(model, onnx.ModelProto):
        return model
    if not isinstance(model, bytes | str | os.PathLike):
        raise ArgumentError(
            f"model is {shown(model)}; expected an onnx.ModelProto, its bytes, or its path"
        )
    try:
        if isinstance(model, bytes):
            return onnx.load_from_string(model)
        files.opened(Path(model), "an ONNX model").close()  # a pipe would be waited for
        return onnx.load(model)
    except Exception as error:  # protobuf has exceptions of its own
        what = "the bytes" if isinstance(model, bytes) else model
        raise ModelError(f"{what}: no ONNX model can be read: {error}") from error
