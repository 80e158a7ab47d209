"""Measures te_select.select against numpy.select and plain C, masks of bits, and dask.

Run ``python benchmarks/names.py`` on an idle machine, after ``te-select where build``. What is
compared takes turns in one run; a number is the median of the times, as a multiple of the first.
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
  const char *c0 = c[0], *c1 = c[1], *c2 = c[2], *c3 = c[3], *c4 = c[4];
  const float *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3], *x4 = x[4];
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; ++i) {
    float v = c4[i] ? x4[i] : 0;
    v = c3[i] ? x3[i] : v, v = c2[i] ? x2[i] : v, v = c1[i] ? x1[i] : v;
    out[i] = c0[i] ? x0[i] : v;
  }
}
"""
where: Any = te_select.where


def plain_c(folder: str) -> Any:
    """The chain in one pass, as the C compiler makes it."""
    source, made = Path(folder, "chain.c"), Path(folder, "chain.so")
    source.write_text(PLAIN_C)
    flags = "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"
    subprocess.run(["cc", *flags, "-o", made, source], check=True)
    return ctypes.CDLL(str(made)).chain


def show(name: str, **calls: Callable[[], Any]) -> None:
    """Print the time of the first call, and that of all as multiples of it."""
    times = take_turns(calls, 15)
    first = next(iter(times.values()))
    ratios = (f"{each} {1 / timing.ratio(first):.3f}" for each, timing in times.items())
    print(f"{name:24} {first.median * 1e6:9.0f} us: {', '.join(ratios)}", flush=True)


def main(chain: Any) -> None:
    """Print ratios of times."""
    rng = np.random.default_rng(0)
    for n in SIZES:
        conds, out = [rng.random(n) < 1 / CONDS for _ in range(CONDS)], np.empty(n, np.float32)
        arrays = [rng.random(n, np.float32) for _ in conds]
        for name, choices in ("arrays", arrays), ("numbers", list(np.arange(5, dtype="f4"))):
            numpys, ours = (partial(f, conds, choices) for f in (np.select, te_select.select))
            show(f"{n} {name}", numpy=numpys, select=ours, with_out=partial(ours, out=out))
        lists = [(ctypes.c_void_p * CONDS)(*(x.ctypes.data for x in xs)) for xs in (conds, arrays)]
        in_c = partial(chain, *lists, ctypes.c_void_p(out.ctypes.data), ctypes.c_long(n))
        show(f"{n} out=", plain_c=in_c, select=partial(te_select.select, conds, arrays, out=out))
    x, mask, out = rng.random(MANY, np.float32), rng.random(MANY) < 1 / 2, np.empty(MANY, "f4")
    masks = {"numpy": mask, "pyarrow": pyarrow.array(mask), "polars": polars.Series(mask)}
    show("mask", **{name: partial(where, each, x, 0.0, out=out) for name, each in masks.items()})
    lazy = [da.from_array(each, chunks=CHUNK) for each in (mask, x, x)]
    show("dask", da=lambda: da.where(*lazy).compute(), ours=lambda: where(*lazy).compute())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made_here:
        main(plain_c(made_here))
