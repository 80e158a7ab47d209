"""Measures te_select.select against numpy.select and plain C, masks of bits, and dask.

Run ``python benchmarks/names.py`` on an idle machine, after ``te-select where build``. What is
compared takes turns in one run, and a ratio is the median over the rounds.
"""

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import polars
import pyarrow

import te_select
from te_select.timing.rounds import take_turns

SIZES, CONDS, MANY, CHUNK = (10**4, 10**6, 10**7), 5, 1 << 22, 1 << 19
PLAIN_C = """
void chain(const char *restrict const *c, const float *restrict const *x, float *out, long n) {
  const char *a = c[0], *b = c[1], *d = c[2], *e = c[3], *f = c[4];
  const float *p = x[0], *q = x[1], *r = x[2], *s = x[3], *t = x[4];
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; ++i) {
    float v = f[i] ? t[i] : 0;
    v = e[i] ? s[i] : v;
    v = d[i] ? r[i] : v;
    v = b[i] ? q[i] : v;
    out[i] = a[i] ? p[i] : v;
  }
}
"""
select: Any = te_select.select
where: Any = te_select.where


def in_plain_c(conds: list[Any], choices: list[Any], out: Any) -> Callable[[], Any]:
    """The chain in one pass, as the C compiler makes it."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "chain.c"), Path(folder, "chain.so")
        source.write_text(PLAIN_C)
        flags = "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"
        subprocess.run(["cc", *flags, "-o", made, source], check=True)
        chain = ctypes.CDLL(str(made)).chain
    lists = [(ctypes.c_void_p * CONDS)(*(x.ctypes.data for x in xs)) for xs in (conds, choices)]
    return partial(chain, *lists, ctypes.c_void_p(out.ctypes.data), ctypes.c_long(out.size))


def show(name: str, calls: dict[str, Callable[[], Any]]) -> None:
    """Print the time of each call, as a multiple of that of the first."""
    times = take_turns(calls, 15)
    first = next(iter(times.values()))
    ratios = (f"{each} {1 / timing.ratio(first):.3f}" for each, timing in times.items())
    print(f"{name:24} {first.median * 1e6:9.0f} us: {', '.join(ratios)}", flush=True)


def main() -> None:
    """Print ratios of times."""
    rng = np.random.default_rng(0)
    for size in SIZES:
        conds = [rng.random(size) < 1 / CONDS for _ in range(CONDS)]
        arrays, out = [rng.random(size, np.float32) for _ in conds], np.empty(size, np.float32)
        for name, choices in ("arrays", arrays), ("numbers", list(np.arange(5, dtype="f4"))):
            calls: dict[str, Callable[[], Any]] = {
                "np.select": partial(np.select, conds, choices),
                "select": partial(select, conds, choices),
                "select with out=": partial(select, conds, choices, out=out),
            }
            if name == "arrays":
                calls["plain C with out="] = in_plain_c(conds, arrays, out)
            show(f"{size} {name}", calls)
    x, mask, out = rng.random(MANY, np.float32), rng.random(MANY) < 1 / 2, np.empty(MANY, "f4")
    masks = {"NumPy": mask, "pyarrow": pyarrow.array(mask), "polars": polars.Series(mask)}
    show("masks", {k: partial(where, each, x, 0.0, out=out) for k, each in masks.items()})
    told, lazy = (da.from_array(each, chunks=CHUNK) for each in (mask, x))
    ways = {"da.where": da.where, "te_select.where": where}
    show("dask", {k: lambda way=way: way(told, lazy, lazy).compute() for k, way in ways.items()})


if __name__ == "__main__":
    main()
