"""A workload: shapes, element type and broadcast rule of one Select."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from te_select.errors import BroadcastError, DTypeError, caught
from te_select.operator import dtypes, systems
from te_select.operator.broadcast import (
    Broadcast,
    Dim,
    Shape,
    bound,
    broadcast,
    format_shape,
    parse_axis,
    parse_shape,
    shown,
)
from te_select.operator.dtypes import ElementType, element_type
from te_select.operator.systems import System

_FIELDS = ("cond_shape", "then_shape", "else_shape", "dtype", "auto_broadcast", "axis")
_LONGEST_NAME = 200  # characters; tools handle longer symbols, people do not


@dataclass(frozen=True)
class Workload:
    """One Select: ``out[i] = then[i] if cond[i] else else_[i]``, after broadcasting.

    Parameters
    ----------
    cond_shape, then_shape, else_shape
        Shapes of the inputs. A dim is an int >= 0 or a name. A name is a size known only at call
        time, and equal wherever the name appears. Only the literal 1 broadcasts, a name never does.
    dtype
        Element type of then, else and out. cond is boolean; any nonzero byte is true.
    auto_broadcast
        ``"numpy"`` (two-step: then with else, then cond one-way to that), ``"none"``, ``"pdpd"``
        or ``"multidirectional"``.
    axis
        Under ``"pdpd"``, the axis of then at which else and cond start; -1 aligns to the right.

    Raises
    ------
    BroadcastError
        If a dim is malformed or the shapes do not combine under the rule.
    DTypeError
        If the element type is not supported.
    """

    cond_shape: Shape
    then_shape: Shape
    else_shape: Shape
    dtype: str = "float32"
    auto_broadcast: str = "numpy"
    axis: int = -1
    broadcast: Broadcast = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        cond_shape: Iterable[Dim],
        then_shape: Iterable[Dim],
        else_shape: Iterable[Dim],
        dtype: Any = "float32",
        auto_broadcast: str = "numpy",
        axis: int = -1,
    ) -> None:
        cond = parse_shape(cond_shape, "cond")
        then = parse_shape(then_shape, "then")
        else_ = parse_shape(else_shape, "else_")
        axis = parse_axis(axis)
        vars(self).update(
            cond_shape=cond,
            then_shape=then,
            else_shape=else_,
            dtype=element_type(dtype).name,
            auto_broadcast=auto_broadcast,
            axis=axis,
            broadcast=broadcast(cond, then, else_, auto_broadcast, axis),
        )

    @classmethod
    def onednn_select(
        cls,
        cond_shape: Iterable[Dim],
        then_shape: Iterable[Dim],
        else_shape: Iterable[Dim],
        dtype: Any = "float32",
        auto_broadcast: str = "numpy",
    ) -> Workload:
        """Make the workload of a oneDNN Graph Select.

        Parameters
        ----------
        cond_shape, then_shape, else_shape
            Shapes of ``cond``, ``src_0`` and ``src_1``.
        dtype
            float32, float16 or bfloat16.
        auto_broadcast
            ``"numpy"`` or ``"none"``.

        Raises
        ------
        BroadcastError
            If the rule is not one of these, or the shapes do not combine. cond may not widen the
            output.
        DTypeError
            If the element type is not one of these.

        Notes
        -----
        oneDNN Graph specification, operation Select.
        """
        of = systems.OPS["onednn"]
        return cls.of_system(of, cond_shape, then_shape, else_shape, dtype, auto_broadcast)

    @classmethod
    def openvino_select(
        cls,
        cond_shape: Iterable[Dim],
        then_shape: Iterable[Dim],
        else_shape: Iterable[Dim],
        dtype: Any = "float32",
        auto_broadcast: str = "numpy",
        axis: int = -1,
    ) -> Workload:
        """Make the workload of an OpenVINO Select-1.

        Parameters
        ----------
        cond_shape, then_shape, else_shape
            Shapes of the three inputs.
        dtype
            Any supported type except the complex ones.
        auto_broadcast
            ``"numpy"``, ``"none"`` or ``"pdpd"``. ``"numpy"`` is stored as ``"multidirectional"``.
        axis
            Where else and cond start under ``"pdpd"``; the other modes ignore it, as OpenVINO does.

        Raises
        ------
        BroadcastError
            If the rule is not one of these, or the shapes do not combine.
        DTypeError
            If the element type is complex.

        Notes
        -----
        OpenVINO operation set, Select-1, and "Broadcast Rules". The document of Select-1 says that
        cond is broadcast one-way. OpenVINO's code differs: shape inference and every reference and
        CPU kernel merge all three shapes both ways, its tests widen the output by cond, and its
        ONNX front end relies on that. The stored rule follows the code.
        """
        of = systems.OPS["openvino"]
        return cls.of_system(of, cond_shape, then_shape, else_shape, dtype, auto_broadcast, axis)

    @classmethod
    def onnx_where(
        cls,
        cond_shape: Iterable[Dim],
        then_shape: Iterable[Dim],
        else_shape: Iterable[Dim],
        dtype: Any = "float32",
        opset: int = systems.ONNX_WHERES[-1],
    ) -> Workload:
        """Make the workload of an ONNX Where.

        Parameters
        ----------
        cond_shape, then_shape, else_shape
            Shapes of ``condition``, ``X`` and ``Y``.
        dtype
            bool, any int, float16, bfloat16 (from opset 16), float32, float64, complex64 or
            complex128.
        opset
            Version of the default operator set, 9 or above.

        Raises
        ------
        BroadcastError
            If the shapes do not combine, or the opset has no Where.
        DTypeError
            If the opset's Where does not take the element type.

        Notes
        -----
        ONNX operators, Where-9 and Where-16, "Multidirectional Broadcasting".
        """
        of = systems.onnx_where(opset)
        return cls.of_system(of, cond_shape, then_shape, else_shape, dtype, of.mode)

    @classmethod
    def of_system(
        cls,
        system: System,
        cond_shape: Iterable[Dim],
        then_shape: Iterable[Dim],
        else_shape: Iterable[Dim],
        dtype: Any,
        auto_broadcast: str,
        axis: int = -1,
    ) -> Workload:
        """Make the workload of a system's Select or Where.

        Parameters
        ----------
        system
            One of `te_select.operator.systems`.
        cond_shape, then_shape, else_shape
            Shapes of the three inputs.
        dtype
            An element type that the system takes.
        auto_broadcast
            A broadcast mode by the system's own name; its default is ``system.mode``.
        axis
            Where else and cond start under ``"pdpd"``; the other modes ignore it.

        Raises
        ------
        BroadcastError
            If the system has no such mode, or the shapes do not combine.
        DTypeError
            If the system does not take the element type.
        """
        rule = system.rule(auto_broadcast)
        name = system.element_type(dtype)
        of_rule = axis if rule == "pdpd" else -1
        return cls(cond_shape, then_shape, else_shape, name, rule, of_rule)

    @property
    def shapes(self) -> tuple[Shape, Shape, Shape]:
        """Shapes of cond, then and else."""
        return self.cond_shape, self.then_shape, self.else_shape

    @property
    def out_shape(self) -> Shape:
        """Shape of the output."""
        return self.broadcast.out_shape

    @property
    def element(self) -> ElementType:
        """Element type of then, else and out."""
        return dtypes.ELEMENT_TYPES[self.dtype]

    @property
    def dim_names(self) -> tuple[str, ...]:
        """Names of the dims known only at call time, sorted."""
        return tuple(sorted(map(str, self.places)))

    @property
    def places(self) -> dict[Dim, tuple[int, int]]:
        """For each named dim an input that has it, from 0, and the axis."""
        return {
            dim: (operand, axis)
            for operand, shape in enumerate(self.shapes)
            for axis, dim in enumerate(shape)
            if isinstance(dim, str)
        }

    @functools.cached_property
    def name(self) -> str:
        """The exported symbol: stable, readable, a C identifier, and different for each workload.

        It ends in a hash if the shapes are long, or if a dim has a name.
        """
        rule = self.auto_broadcast if self.axis == -1 else f"{self.auto_broadcast}{self.axis}"
        shapes = "_".join(
            letter + "x".join(str(dim) for dim in shape)
            for letter, shape in zip("cte", self.shapes, strict=True)
        )
        name = f"select_{self.dtype}_{rule}_{shapes}"
        if not self.dim_names and len(name) <= _LONGEST_NAME:
            return name
        digest = hashlib.sha256(json.dumps(self.to_json()).encode()).hexdigest()[:10]
        return f"{name[:_LONGEST_NAME]}_h{digest}"

    def bind(self, sizes: Mapping[str, int]) -> Workload:
        """Replace every named dim by a size.

        Parameters
        ----------
        sizes
            A size for each of `dim_names`.

        Returns
        -------
        Workload
            The workload with int dims only.

        Raises
        ------
        BroadcastError
            If a name has no size.
        """
        if not isinstance(sizes, Mapping):
            raise BroadcastError(f"sizes {shown(sizes)} is not a mapping of names to sizes")
        missing = [name for name in self.dim_names if name not in sizes]
        if missing:
            raise BroadcastError(f"no size is given for the dims {', '.join(missing)}")
        cond, then, else_ = (bound(shape, sizes) for shape in self.shapes)
        return Workload(cond, then, else_, self.dtype, self.auto_broadcast, self.axis)

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON types."""
        values = {field: getattr(self, field) for field in _FIELDS}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Workload:
        """Read what `to_json` wrote.

        Raises
        ------
        BroadcastError
            If the fields are not those of a workload.
        """
        try:
            return cls(**data)
        except caught(TypeError) as error:
            if isinstance(error, DTypeError):
                raise
            raise BroadcastError(
                f"{shown(data)} is not a workload; expected the fields "
                f"{', '.join(_FIELDS)}, of which the first three must be given"
            ) from error

    def __str__(self) -> str:
        """One line for people: shapes, element type and rule."""
        rule = self.auto_broadcast if self.axis == -1 else f"{self.auto_broadcast} axis {self.axis}"
        return (
            f"cond {format_shape(self.cond_shape)} then {format_shape(self.then_shape)} "
            f"else {format_shape(self.else_shape)} -> {format_shape(self.out_shape)} "
            f"{self.dtype} {rule}"
        )
