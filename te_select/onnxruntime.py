"""Where by te-select inside ONNX Runtime.

The library of `te_select.where` is also a library of custom operators: `register` gives it to a
session, whose Where nodes then run kernels of te-select on the session's threads. `rewrite` makes
models whose nodes name these operators.
"""

from __future__ import annotations

import ctypes
import io
import os
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from te_select.errors import ArgumentError, ModelError, ToolchainError, not_installed
from te_select.numpy_where.kernels import library
from te_select.onnx_model import loaded

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto
    from onnxruntime import SessionOptions

__all__ = ["calls", "register", "rewrite"]

DOMAIN = "te.select"
"""Of the operator Where of te-select, version 1."""
_REWRITTEN = ("compiled", "dispatched")  # statuses of nodes
_libraries: dict[int, ctypes.CDLL] = {}  # those that sessions have, by their handles
_registered: weakref.WeakKeyDictionary[SessionOptions, bool] = weakref.WeakKeyDictionary()


def register(session_options: SessionOptions, *, override: bool = True) -> None:
    """Let sessions run the Where nodes of their models by te-select.

    Parameters
    ----------
    session_options
        The options of sessions that are made later. The kernels are built once, and cached.
    override
        Whether models as they are run our Where. If not, only those that `rewrite` has made do, and
        ONNX Runtime folds their constants as ever.

    Raises
    ------
    ArgumentError
        If it is no ``onnxruntime.SessionOptions``, or was registered otherwise before; or if
        override is no bool.
    ToolchainError
        If onnxruntime is missing, or does not take the library, such as a release before 1.18.
    SelectError
        If the kernels cannot be built, or not be kept in the cache.

    Notes
    -----
    Our operator takes the place of ONNX Runtime's own in the domain of ONNX, by
    ``register_custom_ops_library``; the entry ``te_select.override`` of the session says whether.
    ``te-select onnxruntime build`` writes the library for programs in other languages.
    """
    try:
        import onnxruntime  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        raise ToolchainError(
            "te_select.onnxruntime needs the onnxruntime package; pip install onnxruntime"
        ) from error
    if not isinstance(session_options, onnxruntime.SessionOptions):
        raise ArgumentError(
            f"session_options is {session_options!r}; expected an onnxruntime.SessionOptions"
        )
    if not isinstance(override, bool):
        raise ArgumentError(f"override is {override!r}; expected True or False")
    before = _registered.get(session_options)
    if before == override:
        return
    if before is not None:
        raise ArgumentError(f"session_options were registered with override={before} before")
    path = str(library.whole_file())
    try:
        session_options.add_session_config_entry("te_select.override", str(int(override)))
        session_options.register_custom_ops_library(path)
    except Exception as error:  # ONNX Runtime has exceptions of its own
        raise ToolchainError(
            f"onnxruntime {onnxruntime.__version__} does not take {path}: {error}"
        ) from error
    _registered[session_options] = override
    loaded_by_session = ctypes.CDLL(path)  # the same image
    loaded_by_session.te_select_ort_calls.restype = ctypes.c_int64
    _libraries[loaded_by_session._handle] = loaded_by_session


def calls() -> int:
    """How many Where nodes te-select has run so far, in the sessions of this process.

    ONNX Runtime runs nodes of strings itself, and computes constant nodes when it loads a model.
    """
    return sum(each.te_select_ort_calls() for each in _libraries.values())


def rewrite(model: ModelProto | bytes | str | os.PathLike[str]) -> ModelProto:
    """Make a model whose Where nodes are te-select's operator, in a domain of its own.

    Parameters
    ----------
    model
        The model, its bytes, or its path. External data beside the file is read, too.

    Returns
    -------
    onnx.ModelProto
        A new model. Left as they are: constant nodes and arithmetic of shapes, which ONNX Runtime
        computes when it loads the model, and nodes of strings. If a local function has a Where, all
        local functions are inlined. A session needs `register` to load the model, or the library of
        ``te-select onnxruntime build``.

    Raises
    ------
    ArgumentError
        If it is none of these.
    ModelError
        If it cannot be read, is not a model, contradicts itself, or has functions of the domain
        ``te.select``.
    ToolchainError
        If the onnx package is missing.
    """
    model = loaded(model, "te_select.onnxruntime.rewrite")
    if any(function.domain == DOMAIN for function in model.functions):
        raise ModelError(
            f"the model has a local function of the domain {DOMAIN}; expected none, because it is "
            "that of te-select's operator"
        )
    try:
        from te_select.frontends.onnx import read_onnx  # noqa: PLC0415 - imports onnx
    except ModuleNotFoundError as error:
        raise not_installed("te_select.onnxruntime.rewrite", error) from error
    rewritten = _inlined(model)
    try:
        file = io.BytesIO(rewritten.SerializeToString())
    except Exception as error:  # protobuf has exceptions of its own
        raise ModelError(
            "the model has 2 GiB or more; expected one that was loaded without its external data, "
            "onnx.load(path, load_external_data=False)"
        ) from error
    found = {node.place: node for node in read_onnx(file, expand=False)}
    changed = False
    for place, node in _places(rewritten.graph.node, "graph"):
        if place not in found or found[place].status not in _REWRITTEN:
            continue
        of = found[place]
        shapes = (of.cond_shape, of.then_shape, of.else_shape)
        scalars = sum(1 << i for i, shape in enumerate(shapes) if shape == ())
        node.domain, changed = DOMAIN, True
        del node.attribute[:]  # Where has none; ONNX Runtime would refuse a second one of a name
        node.attribute.add(name="scalars", type=_INT, i=scalars)
    if changed and all(each.domain != DOMAIN for each in rewritten.opset_import):
        rewritten.opset_import.add(domain=DOMAIN, version=1)
    return rewritten


def _inlined(model: ModelProto) -> ModelProto:
    """A copy of a model in which no local function has a Where.

    ONNX Runtime does not infer the types of functions that have operators of other domains.
    """
    from onnx import inliner  # noqa: PLC0415 - optional

    if any(
        node.op_type == "Where"
        for function in model.functions
        for _, node in _places(function.node, "")
    ):
        inlined: ModelProto = inliner.inline_local_functions(model)
        return inlined
    copy = type(model)()
    copy.CopyFrom(model)
    return copy


_INT = 2  # onnx.AttributeProto.INT


def _places(nodes: Iterable[NodeProto], path: str) -> Iterator[tuple[str, NodeProto]]:
    """All nodes of a graph and its bodies, with their places as of `te_select.read_model`."""
    from te_select.frontends.onnx_graph.nodes import bodies  # noqa: PLC0415 - imports onnx

    for index, node in enumerate(nodes):
        yield f"{path}#{index}", node
        for attribute, graph in bodies(node):
            yield from _places(graph.node, f"{path}/{index}:{node.op_type}.{attribute}")
