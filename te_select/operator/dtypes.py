"""Element types: name, width in bytes, and DLPack type code.

Selection copies bits, so a kernel needs only the width. Callers see the name and the code.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from te_select.errors import DTypeError, caught

if TYPE_CHECKING:
    import numpy as np

_ALIKE = 0.5  # least ratio of difflib for a hint: f32 to float32 has 0.6, bf16 to bfloat16 0.67


@dataclass(frozen=True)
class ElementType:
    """One element type.

    Parameters
    ----------
    name
        The NumPy or ml_dtypes name.
    width
        Bytes per element.
    code
        ``DLDataTypeCode`` of dlpack.h.
    """

    name: str
    width: int
    code: int

    @property
    def bits(self) -> int:
        """Bits per element."""
        return 8 * self.width

    @property
    def in_numpy(self) -> bool:
        """Whether NumPy has the type itself; bfloat16 and float8 come from ml_dtypes."""
        return not self.name.startswith(("bfloat", "float8"))


_BOOL = 6
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5}
_SIZED = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"


def _sized(name: str) -> ElementType:
    """The element type whose name ends in its bits."""
    kind = name.rstrip("0123456789")
    return ElementType(name, int(name.removeprefix(kind)) // 8, _CODES[kind])


ELEMENT_TYPES: dict[str, ElementType] = {
    t.name: t
    for t in (
        ElementType("bool", 1, _BOOL),
        *map(_sized, _SIZED.split()),
        ElementType("float8_e4m3fn", 1, 10),
        ElementType("float8_e5m2", 1, 12),
        *map(_sized, ("complex64", "complex128")),
    )
}
_BY_CODE = {(t.code, t.bits): t for t in ELEMENT_TYPES.values()}


def element_type(dtype: Any) -> ElementType:
    """Find the element type that ``dtype`` names.

    Parameters
    ----------
    dtype
        A name (``"float32"``), a NumPy or ml_dtypes type, or a torch or JAX dtype object.

    Returns
    -------
    ElementType
        The element type.

    Raises
    ------
    DTypeError
        If ``dtype`` is not an element type of te_select, or not in native byte order.
    """
    found = ELEMENT_TYPES.get(dtype) if isinstance(dtype, str) else _from_object(dtype)
    if found is None:
        near = _nearest(str(dtype))
        hint = f"; did you mean {near}?" if near else ""
        raise DTypeError(
            f"dtype {repr(dtype)[:80]} is not supported; expected one of {names()}{hint}"
        )
    return found


def _nearest(text: str) -> str:
    """The element type that NumPy gives this name, or whose name is much alike; otherwise empty."""
    import numpy as np  # noqa: PLC0415 - only where it is needed

    scalar = np.sctypeDict.get(text)  # half, double, int
    if scalar is not None and scalar.__name__ in ELEMENT_TYPES:
        return str(scalar.__name__)
    near = difflib.get_close_matches(text, ELEMENT_TYPES, n=1, cutoff=_ALIKE)
    return near[0] if near else ""


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy type of an element type.

    Parameters
    ----------
    name
        The element type.

    Returns
    -------
    numpy.dtype
        NumPy's own type, or that of ml_dtypes.

    Raises
    ------
    DTypeError
        If the type comes from ml_dtypes and ml_dtypes is not installed.
    """
    import numpy as np  # noqa: PLC0415 - names need no NumPy

    if ELEMENT_TYPES[name].in_numpy:
        return np.dtype(name)
    try:
        import ml_dtypes  # noqa: PLC0415 - only these types need it
    except ImportError as error:
        raise DTypeError(f"{name} arrays in NumPy need the package ml_dtypes") from error
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def from_dlpack_code(code: int, bits: int, lanes: int) -> ElementType | None:
    """Find the element type of a DLPack type, or None."""
    return _BY_CODE.get((code, bits)) if lanes == 1 else None


def names() -> str:
    """All element type names, for messages."""
    return ", ".join(ELEMENT_TYPES)


def _from_object(dtype: Any) -> ElementType | None:
    text = str(dtype)
    if text.startswith("torch."):
        return ELEMENT_TYPES.get(text.removeprefix("torch."))
    import numpy as np  # noqa: PLC0415 - names need no NumPy

    try:
        resolved = np.dtype(dtype)
    except caught(Exception):  # NumPy raises many kinds of errors for objects that are not types
        return None
    return ELEMENT_TYPES.get(resolved.name) if dtype is not None and resolved.isnative else None
