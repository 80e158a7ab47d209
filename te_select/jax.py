"""Select for JAX, inside ``jax.jit`` too: ``from te_select.jax import where``.

The operator is a primitive of JAX. Its operands have one rank, so that a batch is one more axis in
front of each of them. Which code it becomes is decided when a program is compiled for a device, by
the shapes that it has then.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from te_select.errors import NotInstalledError

try:
    import jax
    import jax.numpy as jnp
    import jax_tvm_ffi
except ModuleNotFoundError as error:
    raise NotInstalledError(
        f"te_select.jax needs {error.name}, which is not installed; pip install 'te-select[jax]'"
    ) from error
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from te_select.numpy_where.kernels import library
from te_select.operator import family
from te_select.operator.access import Loop, access_pattern
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.operator.workload import Workload

__all__ = ["where"]

_TARGET = "te_select.where"
_LONG_ROW = 4096  # elements; where_plan.h calls no row short that has as many bytes
_MOST_AXES = 64  # as where.h has it


def where(cond: Any, x: Any, y: Any) -> Any:
    """Select element by element: ``out[i] = x[i] if cond[i] else y[i]``, as jax.numpy.where does.

    Parameters
    ----------
    cond
        An array of any shape that broadcasts with the others; nonzero is true.
    x, y
        Arrays or numbers; the element type of the result is the one that JAX promotes them to.

    Returns
    -------
    jax.Array
        A new array: jax.numpy.where's, bit for bit. A kernel of te-select makes it on a CPU, and
        XLA on other devices and in calls that ``docs/where.md`` lists.

    Raises
    ------
    Exception
        Whatever jax.numpy.where raises.

    Notes
    -----
    ``jax.numpy.where``. Gradients of any order, forward mode and vmap are those of Select.
    """
    return _where(cond, x, y)


def _served(cond: Any, x: Any, y: Any) -> Any:
    """The call as one of the primitive, or of jax.numpy.where, which alone knows weak types."""
    (found,) = jax.make_jaxpr(jnp.where)(cond, x, y).out_avals  # raises what jax.numpy.where raises
    shape, dtype = found.shape, found.dtype
    # jax-tvm-ffi passes no complex numbers. A result that is more than its shape and type has a
    # weak type, a sharding, or a memory of its own.
    is_taken = str(dtype) in ELEMENT_TYPES and not jnp.iscomplexobj(found)
    if not is_taken or found != jax.core.ShapedArray(shape, dtype) or 0 in shape:
        return jnp.where(cond, x, y)
    cond, x, y = jnp.asarray(cond).astype(bool), jnp.asarray(x, dtype), jnp.asarray(y, dtype)
    operands = [each.reshape((1,) * (len(shape) - each.ndim) + each.shape) for each in (cond, x, y)]
    return _operator.bind(*operands)


_where = jax.jit(_served, inline=True)
_operator = Primitive("te_select_where")


def _shape_of_out(*operands: Any) -> Any:
    shape = jax.lax.broadcast_shapes(*(each.shape for each in operands))
    return jax.core.ShapedArray(shape, operands[1].dtype)


def _batched(operands: Any, axes: Any) -> Any:
    """Put the batch in front; an operand without one has an axis of extent 1 there."""
    moved = [
        each[None] if axis is None else jnp.moveaxis(each, axis, 0)
        for each, axis in zip(operands, axes, strict=True)
    ]
    return _operator.bind(*moved), 0


# ---- derivatives: a Select of tangents ----------------------------------------------------------


def _with_tangents(primals: Any, tangents: Any) -> Any:
    cond, *sides = primals
    found = _operator.bind(cond, *sides)
    if all(isinstance(each, ad.Zero) for each in tangents[1:]):
        return found, ad.Zero.from_primal_value(found)
    selected = [
        jnp.zeros_like(each) if isinstance(tangent, ad.Zero) else tangent
        for each, tangent in zip(sides, tangents[1:], strict=True)
    ]
    return found, _operator.bind(cond, *selected)


def _transposed(gradient: Any, cond: Any, *sides: Any) -> Any:
    """The gradient of each side that is linear, summed along the axes of which it had one element.

    ``gradient * cond`` would be wrong: an inf that is not selected would become NaN.
    """
    found: list[Any] = [None]
    for number, side in enumerate(sides):
        if not ad.is_undefined_primal(side):
            found.append(None)
        elif isinstance(gradient, ad.Zero):
            found.append(ad.Zero(side.aval))
        else:
            pair = (gradient, jnp.zeros((1,) * gradient.ndim, gradient.dtype))
            selected = _operator.bind(cond, *(pair if number == 0 else pair[::-1]))
            extents = enumerate(zip(side.aval.shape, gradient.shape, strict=True))
            axes = tuple(axis for axis, (own, whole) in extents if own != whole)
            found.append(jnp.sum(selected, axes, keepdims=True, dtype=gradient.dtype))
    return found


# ---- what it becomes ----------------------------------------------------------------------------


def _lowered(context: Any, *operands: Any) -> Any:
    """A call of a kernel, or XLA's own Select.

    A program that is exported may run elsewhere, and only XLA's Select is divided among devices.
    """
    axes, shape = context.module_context.axis_context, context.avals_out[0].shape
    divided = getattr(axes, "num_devices", 1) > 1
    exported = context.module_context.lowering_parameters.for_export
    if divided or exported or len(shape) > _MOST_AXES or not _fetch(*context.avals_in):
        return _by_xla(context, *operands)
    return jax.ffi.ffi_lowering(_TARGET)(context, *operands)


def _fetch(cond: Any, x: Any, y: Any) -> bool:
    """Load the kernels for operands of these shapes, and give them to XLA."""
    width = x.dtype.itemsize
    if not library.fetch(family.part_of_width(width)):
        return False
    with _registering:  # XLA refuses a second registration
        select = _registered()
    shapes = (cond.shape, x.shape, y.shape)
    pattern = access_pattern(Workload(*shapes, str(x.dtype), "multidirectional"))
    result = select(*_like_the_innermost(pattern.loops[-2:], width))
    if result >= family.MISSING_KERNEL:
        library.fetch_missing_kernel(result - family.MISSING_KERNEL)  # without it, runs do the work
    return True


def _like_the_innermost(loops: Sequence[Loop], width: int) -> list[Any]:
    """Small operands that need the same kernel of rows: two rows, which are short or not."""
    most = (2, _LONG_ROW)[2 - len(loops) :]
    extents = [min(loop.bound({}), bound) for loop, bound in zip(loops, most, strict=True)]
    moves = [[getattr(loop, side) for loop in loops] for side in ("cond", "then", "else_")]
    shapes = [
        [extent if each else 1 for extent, each in zip(extents, m, strict=True)] for m in moves
    ]
    types = ("?", *[f"u{width}"] * 3)
    return [np.zeros(shape, kind) for shape, kind in zip([*shapes, extents], types, strict=True)]


_registering = threading.Lock()


@functools.cache
def _registered() -> Any:
    """The function of the kernels, which XLA knows from now on."""
    function = library.function()
    jax_tvm_ffi.register_ffi_target(_TARGET, function, platform="cpu")
    return function


def _evaluated(*operands: Any) -> Any:
    """Compile what is called outside of a program, though jit be switched off: only XLA runs it."""
    with jax.disable_jit(False):
        return _compiled(*operands)


_by_xla = mlir.lower_fun(jnp.where, multiple_results=False)
_compiled = jax.jit(_operator.bind)
_operator.def_impl(_evaluated)
_operator.def_abstract_eval(_shape_of_out)
mlir.register_lowering(_operator, _by_xla)
mlir.register_lowering(_operator, _lowered, platform="cpu")
batching.primitive_batchers[_operator] = _batched
ad.primitive_jvps[_operator] = _with_tangents
ad.primitive_transposes[_operator] = _transposed
