"""What ONNX's shape inference says of the tensors of a model, from a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from onnx import GraphProto, ModelProto, TypeProto, onnx_cpp2py_export

from te_select.errors import ModelError, ToolchainError, caught
from te_select.frontends.onnx_graph.nodes import DTYPES
from te_select.frontends.tensors import Dim, Tensor

_CHILD = Path(__file__).with_name("child.py")
_MOST_BYTES = 2 << 30  # of memory; 90,000 nodes take a fifth
_MOST_SECONDS = 60  # of a CPU; 100,000 nodes take one


def inferred(model: ModelProto, names: Mapping[str, str]) -> dict[str, Tensor]:
    """What is known of the tensors of a model in which a name is one tensor.

    Parameters
    ----------
    model
        The model, without local functions.
    names
        What names of its dims are called. ONNX invents others, of which nothing is known.

    Raises
    ------
    ModelError
        If ONNX refuses the model, or would need too much memory or time.
    ToolchainError
        If the process cannot be started.
    """
    command = [sys.executable or "python3", "-I", "-S", str(_CHILD)]
    command += [onnx_cpp2py_export.__file__, str(_MOST_BYTES), str(_MOST_SECONDS)]
    try:
        # With one pipe: Python waits for several by code that loses errors of signal handlers.
        with _in_memory() as given, _in_memory() as errors:
            given.write(model.SerializeToString())
            given.seek(0)
            done = subprocess.run(
                command, stdin=given, stdout=subprocess.PIPE, stderr=errors, check=False
            )
            errors.seek(0)
            said = " ".join(errors.read().decode(errors="replace").split())
    except caught(OSError) as error:
        raise ToolchainError(f"the process that infers shapes cannot start: {error}") from error
    if done.returncode:
        end = signal.Signals(-done.returncode).name if done.returncode < 0 else said
        raise ModelError(f"onnx cannot infer the shapes: {end}")
    return dict(tensors_of(ModelProto.FromString(done.stdout).graph, names))


def _in_memory() -> BinaryIO:
    return os.fdopen(os.memfd_create("te_select"), "w+b")


def tensors_of(graph: GraphProto, names: Mapping[str, str]) -> Iterator[tuple[str, Tensor]]:
    """What the types in a graph and its bodies say, by the names of the tensors."""
    for info in (*graph.input, *graph.value_info):
        yield info.name, _tensor(info.type, names)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from tensors_of(attribute.g, names)


def _tensor(proto: TypeProto, names: Mapping[str, str]) -> Tensor:
    tensor = proto.tensor_type
    dims: list[Dim] = []
    for dim in tensor.shape.dim:
        said = dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None
        dims.append(names.get(dim.dim_param, said))
    shape = tuple(dims) if tensor.HasField("shape") else None
    return Tensor(DTYPES.get(tensor.elem_type), shape)
