"""A Where or Select of a model, and what te-select does with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from te_select.operator.broadcast import Shape
from te_select.operator.workload import Workload

Status = Literal["compiled", "dispatched", "shape", "folded", "refused"]


@dataclass(frozen=True)
class ModelFile:
    """The file of a model: its name without folders, and the SHA-256 of its bytes."""

    name: str
    sha256: str


@dataclass(frozen=True)
class ModelNode:
    """One Where or Select of a model.

    Parameters
    ----------
    name
        Its name in the file. It may be empty, and other nodes may have the same name.
    place
        Where it is; unique in the file. ONNX: ``graph#56``, ``graph/3:If.then_branch#0``,
        ``function:domain::name#4``. The last number is the index in that graph's list of nodes.
        OpenVINO: ``net#<layer id>``,
        ``net/<layer id>:<type>.<body>#<layer id>``. oneDNN Graph: ``graph#<index>``.
    op
        The operator: ``Where-9``, ``Where-16``, ``Select-1`` (OpenVINO), ``Select`` (oneDNN).
    status
        ``"compiled"``: it has a kernel, for `workload`. ``"dispatched"``: a dim, the rank, the
        element type or which dim broadcasts is known only at the call. ``"shape"``: it selects a
        few ints from which shapes are made; nothing is built. ``"folded"``: the same at every call,
        so it can be computed once. ``"refused"``: no kernel can serve it.
    workload
        The workload of a ``"compiled"`` node; otherwise None.
    reason
        Why the status is not ``"compiled"``; empty if it is.
    cond_producer
        What makes cond: the type of an operator (with its domain if that is not the format's own:
        ``my.ops::leaky``), ``graph input``, ``body input``, ``function input`` or ``initializer``.
    cond_shape, then_shape, else_shape, out_shape
        The shapes, by the names of the workload; None if the rank is not known. A dim of which
        nothing is known before the call is ``"?"``.
    dtype
        Element type of then, else and out. It is the format's own name if te_select has no such
        type, and None if the type is not known.
    dims
        What each name in the shapes stands for: the file's own text for it, or the input and the
        axis.
    auto_broadcast, axis
        The rule, as a `te_select.Workload` has it.
    model
        The file that it was read from. Nodes of two files may be equal.
    """

    name: str
    place: str
    op: str
    status: Status
    workload: Workload | None
    reason: str
    cond_producer: str
    cond_shape: Shape | None = None
    then_shape: Shape | None = None
    else_shape: Shape | None = None
    out_shape: Shape | None = None
    dtype: str | None = None
    dims: Mapping[str, str] = field(default_factory=dict, hash=False)
    auto_broadcast: str = "multidirectional"
    axis: int = -1
    model: ModelFile | None = field(default=None, compare=False, repr=False)
