"""The systems that have a Select or Where: their broadcast rules, element types and type names.

It is the only such table. The constructors of `te_select.operator.workload.Workload`, the flag
``--op`` and the readers of model files all use it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from te_select.errors import BroadcastError, DTypeError
from te_select.operator.broadcast import shown
from te_select.operator.dtypes import ELEMENT_TYPES, element_type

_FLOAT8 = [name for name in ELEMENT_TYPES if name.startswith("float8")]
_COMPLEX = [name for name in ELEMENT_TYPES if name.startswith("complex")]
_ONNX_BFLOAT16_OPSET = 16
ONNX_WHERES = (9, 16)
"""The opsets that define ONNX's Where, or define it anew."""

_SPELLED = {
    # te-select:     (OpenVINO in ports and attributes, oneDNN Graph, ONNX's TensorProto.DataType)
    "bool": ("boolean bool", "boolean", "bool"),
    "int8": ("i8", "s8", "int8"),
    "int16": ("i16", "", "int16"),
    "int32": ("i32", "s32", "int32"),
    "int64": ("i64", "s64", "int64"),
    "uint8": ("u8", "u8", "uint8"),
    "uint16": ("u16", "", "uint16"),
    "uint32": ("u32", "", "uint32"),
    "uint64": ("u64", "", "uint64"),
    "float16": ("f16 fp16", "f16", "float16"),
    "bfloat16": ("bf16", "bf16", "bfloat16"),
    "float32": ("f32 fp32", "f32", "float"),
    "float64": ("f64 fp64", "f64", "double"),
    "float8_e4m3fn": ("f8e4m3", "f8_e4m3", "float8e4m3fn"),
    "float8_e5m2": ("f8e5m2", "f8_e5m2", "float8e5m2"),
    "complex64": ("", "", "complex64"),
    "complex128": ("", "", "complex128"),
}


def _column(k: int) -> dict[str, str]:
    return {word: name for name, row in _SPELLED.items() for word in row[k].split()}


# By the short name of a system: our name of each element type by the system's own, lower case.
TYPE_NAMES: Mapping[str, Mapping[str, str]] = {
    "openvino": _column(0),
    "onednn": _column(1),
    "onnx": _column(2),
}


@dataclass(frozen=True, eq=False)  # there is one of each
class System:
    """The Select or Where of one system.

    Parameters
    ----------
    title
        Its name in messages.
    modes
        Its broadcast modes by the system's own names, each with the equal rule of te-select.
    mode
        The default mode.
    refused
        The element types that it does not take, each with the message.
    """

    title: str
    modes: Mapping[str, str]
    mode: str
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_axis(self) -> bool:
        """Whether a mode takes an axis."""
        return "pdpd" in self.modes.values()

    def rule(self, mode: str) -> str:
        """The rule of te-select that equals a broadcast mode.

        Raises
        ------
        BroadcastError
            If the system has no such mode.
        """
        if not isinstance(mode, str) or mode not in self.modes:
            raise BroadcastError(
                f"{self.title} has no auto_broadcast {shown(mode)}; expected one of "
                f"{', '.join(self.modes)}"
            )
        return self.modes[mode]

    def element_type(self, dtype: Any) -> str:
        """The name of an element type that the system takes.

        Raises
        ------
        DTypeError
            If te-select or the system does not take it.
        """
        name = element_type(dtype).name
        if name in self.refused:
            raise DTypeError(self.refused[name])
        return name


def onnx_where(opset: int) -> System:
    """The Where of a version of ONNX's default operator set.

    Raises
    ------
    BroadcastError
        If the version has no Where.

    Notes
    -----
    ONNX operators, Where-9 and Where-16, "Multidirectional Broadcasting". They differ in bfloat16.
    """
    if isinstance(opset, bool) or not isinstance(opset, int) or opset < ONNX_WHERES[0]:
        raise BroadcastError(
            f"opset {shown(opset)} has no Where; expected {ONNX_WHERES[0]} or above"
        )
    refused = _refused("ONNX Where", _unnamed("onnx"), "it has no such type")
    refused |= _refused("ONNX Where", _FLOAT8, "it has no float8 types")
    if opset < _ONNX_BFLOAT16_OPSET:
        older = f"Where of opset {opset}"
        refused |= _refused(older, ["bfloat16"], f"opset {_ONNX_BFLOAT16_OPSET} does")
    rule = "multidirectional"
    return System("ONNX Where", {rule: rule}, rule, refused)


def _unnamed(system: str) -> list[str]:
    """The element types for which a system has no name."""
    return [name for name in ELEMENT_TYPES if name not in TYPE_NAMES[system].values()]


def _refused(title: str, names: Iterable[str], why: str) -> dict[str, str]:
    return {name: f"{title} does not take {name}; {why}" for name in names}


_ONEDNN_TYPES = ("float32", "float16", "bfloat16")
# The systems whose models te-select serves, by their short names.
OPS: Mapping[str, System] = {
    "onnx": onnx_where(ONNX_WHERES[-1]),
    # `Workload.openvino_select` says why its "numpy" is multidirectional.
    "openvino": System(
        title="OpenVINO Select-1",
        modes={"none": "none", "numpy": "multidirectional", "pdpd": "pdpd"},
        mode="numpy",
        refused=_refused("OpenVINO Select-1", _unnamed("openvino"), "it has no such type")
        | _refused("OpenVINO Select-1", _COMPLEX, "it has no complex types"),
    ),
    # oneDNN Graph specification, operation Select.
    "onednn": System(
        title="oneDNN Graph Select",
        modes={"none": "none", "numpy": "numpy"},
        mode="numpy",
        refused=_refused(
            "oneDNN Graph Select",
            (name for name in ELEMENT_TYPES if name not in _ONEDNN_TYPES),
            f"expected one of {', '.join(_ONEDNN_TYPES)}",
        ),
    ),
}
