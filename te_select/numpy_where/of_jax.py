"""`te_select.where` for JAX arrays: jax.numpy.where.

XLA selects as fast as the kernels do, up to 4 MB. Beyond that the kernels gain less than a factor
of two, and no public function makes an array with the weak type, the sharding and the commitment to
devices that the result of jax.numpy.where has.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from te_select.errors import ArgumentError


def in_kind(*args: Any, out: Any = None) -> Any:
    """Select as jax.numpy.where does, inside ``jax.jit`` too.

    Parameters
    ----------
    args
        cond, or cond, x and y.
    out
        None, because JAX arrays are never written.

    Returns
    -------
    jax.Array
        What jax.numpy.where returns.

    Raises
    ------
    ArgumentError
        If out is given.
    Exception
        Whatever jax.numpy.where raises.
    """
    if out is not None:
        raise ArgumentError(
            "out has no meaning for JAX, which never writes to an array; leave it out"
        )
    return jnp.where(*args)
