"""Measures te_select.jax.where against jax.numpy.where in jax.jit, alone and between neighbours.

Run ``python benchmarks/in_jit.py`` on an idle machine. Both take turns in one run; a ratio is the
median over the rounds of their time over ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from te_select.jax import where
from te_select.timing.rounds import take_turns

ROUNDS = 15
HALF = 0.5  # the share of true elements of a mask
SHAPES = (
    ((1000,),) * 3,
    ((100, 1000),) * 3,
    ((1000, 1000),) * 3,
    ((2048, 2048),) * 3,
    ((1, 1, 512, 512), (4, 12, 512, 512), ()),
    ((30000, 1), (30000, 63), (30000, 63)),
    ((10000, 1), (10000, 1000), (1, 1000)),
)
PROGRAMS: dict[str, Callable[..., Any]] = {
    "alone": lambda where, c, x, y: where(c, x, y),
    "between neighbours": lambda where, c, x, y: jnp.tanh(where(c, x * 2, y)) + 1,
    "before a product": lambda where, c, x, y: where(c, x, y) @ jnp.ones(x.shape[-1]),
}


def main() -> None:
    """Print a line for each program and shapes."""
    rng = np.random.default_rng(0)
    for shapes in SHAPES:
        cond = jnp.asarray(rng.random(shapes[0]) < HALF)
        sides = [jnp.asarray(rng.standard_normal(shape, np.float32)) for shape in shapes[1:]]
        for name, program in PROGRAMS.items():
            calls = {
                "ours": _call(partial(program, where), cond, *sides),
                "XLA": _call(partial(program, jnp.where), cond, *sides),
            }
            times = take_turns(calls, ROUNDS)
            ratio = times["ours"].ratio(times["XLA"])
            size = math.prod(np.broadcast_shapes(*shapes))
            shown = ", ".join(f"{each} {time.median * 1e6:.0f} us" for each, time in times.items())
            print(f"{size:>9} {name:18} {shapes!s:50} {shown}; {ratio:.2f}", flush=True)


def _call(program: Callable[..., Any], *operands: Any) -> Callable[[], Any]:
    compiled = jax.jit(program)
    return lambda: compiled(*operands).block_until_ready()


if __name__ == "__main__":
    main()
