"""What is known about a tensor before the model runs."""

from collections.abc import Sequence
from dataclasses import dataclass

# A size, the name of one, or None if nothing is known of it.
Dim = int | str | None
Dims = tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """What is known about a tensor.

    Parameters
    ----------
    dtype
        The format's name of the element type; None if it is not known.
    shape
        Its dims; None if not even the rank is known.
    constant
        Whether it is the same at every call.
    """

    dtype: str | None = None
    shape: Dims | None = None
    constant: bool = False


def format_dims(dims: Sequence[Dim]) -> str:
    """Write a shape as ``[2,batch,?]``."""
    return f"[{','.join('?' if dim is None else str(dim) for dim in dims)}]"


def agree(shape: Sequence[object], other: Sequence[object]) -> bool:
    """Whether two shapes may be those of one tensor: equal ranks, and no two ints that differ."""
    return len(shape) == len(other) and all(
        p == q
        for p, q in zip(shape, other, strict=True)
        if isinstance(p, int) and isinstance(q, int)
    )


def join(tensors: Sequence[Tensor]) -> Tensor:
    """What holds for a tensor that is any of several."""
    first = tensors[0]
    dtype = first.dtype if len({tensor.dtype for tensor in tensors}) == 1 else None
    constant = all(tensor.constant for tensor in tensors)
    shapes = [tensor.shape for tensor in tensors if tensor.shape is not None]
    if len(shapes) < len(tensors) or len(set(map(len, shapes))) > 1:
        return Tensor(dtype, None, constant)
    dims = (dims[0] if len(set(dims)) == 1 else None for dims in zip(*shapes, strict=True))
    return Tensor(dtype, tuple(dims), constant)
