"""`te_select.where` for JAX arrays: by kernels on the CPU, by jax.numpy.where elsewhere."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from te_select.errors import ArgumentError


def where(*args: Any, out: Any = None) -> Any:
    """Select as jax.numpy.where does.

    Parameters
    ----------
    args
        cond, or cond, x and y.
    out
        None, because JAX arrays are never written.

    Returns
    -------
    jax.Array
        A new array, of ``jnp.result_type(x, y)``, on the device of the arrays.

    Raises
    ------
    ArgumentError
        If out is given, or an operand is a tracer, as inside ``jax.jit``.
    Exception
        Whatever jax.numpy.where raises.
    """
    if out is not None:
        raise ArgumentError(
            "out has no meaning for JAX, which never writes to an array; leave it out"
        )
    if any(isinstance(value, jax.core.Tracer) for value in args):
        raise ArgumentError(
            "te_select.where cannot be traced by jax.jit, jax.grad or jax.vmap; use jnp.where, "
            "which XLA fuses with what surrounds it"
        )
    arrays = [value for value in args if isinstance(value, jax.Array)]
    devices = set().union(*(value.devices() for value in arrays))
    if len(args) != 3 or len(devices) != 1 or next(iter(devices)).platform != "cpu":  # noqa: PLR2004 - cond, x, y
        return jnp.where(*args)
    cond, x, y = args
    dtype = jnp.result_type(x, y)
    if np.dtype(dtype).kind not in "biufcV" or not all(map(_is_plain, args)):
        return jnp.where(*args)
    from te_select.functional.where import where as of_numpy  # noqa: PLC0415 - it imports this module

    carrier = np.dtype(f"V{np.dtype(dtype).itemsize}")  # the bits of any type
    sides = [np.ascontiguousarray(jnp.asarray(side, dtype)).view(carrier) for side in (x, y)]
    sides = [side.reshape(np.shape(given)) for side, given in zip(sides, (x, y), strict=True)]
    found = of_numpy(np.asarray(cond).astype(bool, copy=False), *sides)
    return jax.device_put(found.view(dtype), next(iter(devices)))


def _is_plain(value: Any) -> bool:
    """Whether a value is one array, or a number."""
    return isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)) or (
        isinstance(value, jax.Array) and value.is_fully_addressable
    )
