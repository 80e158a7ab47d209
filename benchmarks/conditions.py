"""Measures conditions of `te_select.lazy` against NumPy's comparisons, numexpr, JAX and torch.

Run ``python benchmarks/conditions.py [--sizes 4,6,7]`` on an idle machine. What is compared takes
turns in one run; all but JAX write into arrays that are there. The first figure of a line is
`te_select.where` with NumPy's comparison in microseconds, the others are speed-ups over it.
"""

import argparse
import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import te_select
from calls_of_where import us
from te_select.timing.rounds import take_turns

ROUNDS = 9
LOW, HIGH = -0.5, 0.5
where = te_select.where


def by_te_select(a: Any, b: Any, x: Any) -> dict[str, Callable[..., Any]]:
    """Each case, of an array or of what `te_select.lazy` makes of it."""
    out = np.empty_like(a)
    return {
        "a > t": lambda: where(x > HIGH, a, b, out=out),
        "lo <= a < hi": lambda: where((x >= LOW) & (x < HIGH), a, 0, out=out),
        "isnan(a)": lambda: where(np.isnan(x), 0, a, out=out),
        "isnan(a), in place": lambda: where(np.isnan(x), 0, a, out=a),
    }


def by_numexpr(a: Any, b: Any) -> dict[str, Callable[..., Any]]:
    """The cases that numexpr has."""
    numexpr = importlib.import_module("numexpr")
    out = np.empty_like(a)
    names = {"a": a, "b": b, "low": np.float32(LOW), "high": np.float32(HIGH), "no": np.float32(0)}
    evaluate = partial(numexpr.evaluate, local_dict=names, out=out)
    return {
        "a > t": lambda: evaluate("where(a > high, a, b)"),
        "lo <= a < hi": lambda: evaluate("where((a >= low) & (a < high), a, no)"),
        "isnan(a)": lambda: evaluate("where(a != a, no, a)"),
    }


def by_jax(a: Any, b: Any) -> dict[str, Callable[..., Any]]:
    """The cases under jax.jit, whose results are new."""
    jax = importlib.import_module("jax")
    xp = jax.numpy
    mine, other = xp.asarray(a), xp.asarray(b)
    more = jax.jit(lambda a, b: xp.where(a > HIGH, a, b))
    inside = jax.jit(lambda a: xp.where((a >= LOW) & (a < HIGH), a, 0))
    no_nan = jax.jit(lambda a: xp.where(xp.isnan(a), 0, a))
    return {
        "a > t": lambda: more(mine, other).block_until_ready(),
        "lo <= a < hi": lambda: inside(mine).block_until_ready(),
        "isnan(a)": lambda: no_nan(mine).block_until_ready(),
    }


def by_torch(a: Any, b: Any) -> dict[str, Callable[..., Any]]:
    """The cases under torch.compile."""
    torch = importlib.import_module("torch")
    mine, other, out = map(torch.from_numpy, (a, b, np.empty_like(a)))
    more = torch.compile(lambda a, b, out: out.copy_(torch.where(a > HIGH, a, b)))
    inside = torch.compile(lambda a, out: out.copy_(torch.where((a >= LOW) & (a < HIGH), a, 0)))
    no_nan = torch.compile(lambda a, out: out.copy_(torch.where(torch.isnan(a), 0, a)))
    return {
        "a > t": lambda: more(mine, other, out),
        "lo <= a < hi": lambda: inside(mine, out),
        "isnan(a)": lambda: no_nan(mine, out),
    }


OTHERS = {"numexpr": by_numexpr, "jax": by_jax, "torch": by_torch}


def main() -> None:
    """Print a line for each size and case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="4,5,6,7", help="powers of ten")
    parser.add_argument("--others", default=",".join(OTHERS), help="of numexpr, jax, torch")
    options = parser.parse_args()
    named = [each for each in options.others.split(",") if each and importlib.util.find_spec(each)]
    for exponent in map(int, options.sizes.split(",")):
        a, b = np.random.default_rng(0).standard_normal((2, 10**exponent), np.float32)
        ways = {"numpy": by_te_select(a, b, a), "lazy": by_te_select(a, b, te_select.lazy(a))}
        ways |= {name: OTHERS[name](a, b) for name in named}
        for case in ways["lazy"]:
            turns = {name: way[case] for name, way in ways.items() if case in way}
            for call in turns.values():
                for _ in range(3):  # torch and JAX compile
                    call()
            times = take_turns(turns, ROUNDS)
            ratios = [f"{name} {times[name].ratio(times['numpy']):.2f}" for name in turns]
            print(f"10^{exponent} {case:18} {us(times['numpy']):10.2f}  {'  '.join(ratios[1:])}")


if __name__ == "__main__":
    main()
