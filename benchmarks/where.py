"""Measures te_select.where against numpy.where, torch.where and kernels compiled for a shape.

Run ``python benchmarks/where.py [SECTION ...] [--sizes 3,4,5] [--dtypes float32]`` on an idle
machine, after ``te-select where build``; without a section, all run. What is compared takes turns
in one run, and a ratio is the median over the rounds.
"""

import argparse
import ctypes
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import small_calls

import te_select
from calls_of_where import HALF, Arguments, into, patterns, show, us, where
from te_select.timing.rounds import sample_in_turns, take_turns

ROUNDS = 9
LOOP = 20  # calls
NEIGHBOURS = 1 << 22  # elements
SIZES = (1, 2, 3, 4, 5, 6, 7, 8)
DTYPES = ("float32", "float16", "int64")
CONDS = 5
CHAIN = """
void chain(const char *const *c, const float *const *x, float *out, long n) {
  const char *c0 = c[0], *c1 = c[1], *c2 = c[2], *c3 = c[3], *c4 = c[4];
  const float *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3], *x4 = x[4];
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; ++i) {
    float v = c3[i] ? x3[i] : c4[i] ? x4[i] : 0;
    out[i] = c0[i] ? x0[i] : c1[i] ? x1[i] : c2[i] ? x2[i] : v;
  }
}
"""
MIXED = (
    *(("float32", "float64"), ("int32", "float32"), ("int64", "float64")),
    *(("uint8", "float32"), ("bool", "float32"), ("float16", "float32")),
)


def compare(
    options: argparse.Namespace, theirs: Callable[..., Any], turn: Callable[..., Any]
) -> None:
    """Compare fresh results and out= with another function, over sizes, patterns and types."""
    print(f"{'elements':>10} {'type':8} {'pattern':14} microseconds: other, fresh, out=; ratios")
    fresh = []
    with_out = []
    for exponent in options.sizes:
        for dtype in options.dtypes:
            for name, given in patterns(10**exponent, dtype):
                arguments = tuple(turn(value, dtype) for value in given)
                out, other = theirs(*arguments), theirs(*arguments)
                times = take_turns(
                    {
                        "other": partial(theirs, *arguments),
                        "other out": into(theirs, arguments, other),
                        "fresh": partial(where, *arguments),
                        "out": into(where, arguments, out),
                    },
                    ROUNDS,
                )
                ratios = (
                    times["fresh"].ratio(times["other"]),
                    times["out"].ratio(times["other out"]),
                )
                if 4 * 10**exponent >= 1 << 20:
                    fresh.append(ratios[0])
                    with_out.append(ratios[1])
                shown = " ".join(f"{us(times[each]):10.2f}" for each in ("other", "fresh", "out"))
                place = f"{10**exponent:>10} {dtype:8} {name:14}"
                print(f"{place} {shown}  {ratios[0]:.2f} {ratios[1]:.2f}", flush=True)
    if fresh:
        means = map(statistics.geometric_mean, (fresh, with_out))
        print("from 1 MB on: fresh {:.2f}, out= {:.2f}".format(*means))


def against_numpy(options: argparse.Namespace) -> None:
    """Compare with numpy.where; out= with numpy.where of a fresh result, as it has no other."""
    compare(options, np.where, lambda value, _dtype: value)


def against_torch(options: argparse.Namespace) -> None:
    """Compare with torch.where."""
    import torch  # noqa: PLC0415 - optional

    def turn(value: Any, dtype: str) -> Any:
        """As a tensor, numbers too: torch.where has out= for tensors only."""
        array = isinstance(value, np.ndarray)
        return (
            torch.from_numpy(value) if array else torch.tensor(value, dtype=getattr(torch, dtype))
        )

    compare(options, torch.where, turn)


def against_compiled(options: argparse.Namespace) -> None:
    """Compare with the kernel compiled for the very shape, all with out=."""
    for exponent in options.sizes:
        for dtype in options.dtypes:
            short = _values(10**exponent // 3, dtype)
            rows = ("rows of 3", short)
            for name, (cond, x, y) in (*patterns(10**exponent, dtype), rows):
                scalar = np.asarray(y, dtype)
                shapes = (cond.shape, x.shape, scalar.shape)
                kernel = te_select.compile(te_select.Workload(*shapes, dtype, "multidirectional"))
                out = np.where(cond, x, scalar)
                times = take_turns(
                    {
                        "compiled": partial(kernel, cond, x, scalar, out),
                        "where": into(where, (cond, x, scalar), out),
                    },
                    ROUNDS,
                )
                ratio = times["where"].ratio(times["compiled"])
                print(f"{out.nbytes:>12} bytes {dtype:8} {name:14} {ratio:.2f}")


def _values(rows: int, dtype: str) -> Arguments:
    rng = np.random.default_rng(0)
    cond = rng.random((rows, 1)) < HALF
    return cond, rng.integers(0, 9, (rows, 3)).astype(dtype), rng.integers(0, 9, 3).astype(dtype)


def converted(options: argparse.Namespace) -> None:
    """Compare sides of two types with numpy.where, and with sides of the result's type."""
    rng = np.random.default_rng(0)
    for exponent in options.sizes:
        elements = 10**exponent
        cond = rng.random(elements) < HALF
        for types in MIXED:
            x, y = (rng.integers(0, 100, elements).astype(each) for each in types)
            out = np.where(cond, x, y)
            alike = x.astype(out.dtype), y.astype(out.dtype)
            calls: dict[str, Callable[[], Any]] = {
                "numpy": partial(np.where, cond, x, y),
                "where": partial(where, cond, x, y),
                "out=": into(where, (cond, x, y), out),
                "out= of equal types": into(where, (cond, *alike), out),
            }
            show(f"{elements:>10} {' and '.join(types)}", calls, ROUNDS)


def fresh(options: argparse.Namespace) -> None:
    """Compare loops of ``x = where(...)`` with loops with out=, from the third call on."""

    def loop(arguments: Arguments, out: Any) -> float:
        """Seconds of a call."""
        seconds, result = [], None
        for _ in range(LOOP):
            begun = time.perf_counter()
            result = where(*arguments, out=out)
            seconds.append(time.perf_counter() - begun)
        del result
        return statistics.median(seconds[2:])

    for exponent in options.sizes:
        for name, arguments in patterns(10**exponent, "float32"):
            out = where(*arguments)
            loops = {
                "fresh": partial(loop, arguments, None),
                "out=": partial(loop, arguments, out),
            }
            times = sample_in_turns(loops, ROUNDS)
            ratio = times["fresh"].ratio(times["out="])
            print(
                f"{10**exponent:>10} {name:14} {us(times['fresh']):10.2f} us, {ratio:.2f} of out="
            )


def in_place(_options: argparse.Namespace) -> None:
    """Compare with np.copyto, np.putmask and torch on 10^7 floats of which some are replaced."""
    elements = 10**7
    rng = np.random.default_rng(0)
    x, values = rng.random((2, elements), np.float32)
    block = np.zeros(elements, bool)
    block[elements // 3 : elements // 3 + elements // 100] = True
    masks = {
        "a block of 1 %": block,
        "none": np.zeros(elements, bool),
        "all": np.ones(elements, bool),
        **{f"{share:.0%} at random": rng.random(elements) < share for share in (0.01, 0.5, 0.99)},
    }
    for name, mask in masks.items():
        for side, value in (("number", np.float32(2)), ("array", values)):
            calls: dict[str, Callable[[], Any]] = {
                "where": partial(where, mask, value, x, out=x),
                "copyto": partial(np.copyto, x, value, where=mask),
                "putmask": partial(np.putmask, x, mask, value),
            }
            if side == "number" and importlib.util.find_spec("torch"):
                torch = importlib.import_module("torch")
                tensor, told = torch.from_numpy(x), torch.from_numpy(mask)
                calls["masked_fill_"] = partial(tensor.masked_fill_, told, 2.0)
            show(f"{name:16} {side:7}", calls, ROUNDS)


def neighbours(_options: argparse.Namespace) -> None:
    """Compare operands of NumPy's neighbours with the arrays that np.asarray makes of them."""
    x = np.random.default_rng(0).random(NEIGHBOURS, np.float32)
    kinds = {"memmap": x.view(np.memmap)}
    for package, kind in (("pandas", "Series"), ("xarray", "DataArray"), ("polars", "Series")):
        if importlib.util.find_spec(package):
            kinds[f"{package}.{kind}"] = getattr(importlib.import_module(package), kind)(x)
        else:
            print(f"absent: {package}")
    out = np.empty_like(x)
    for name, values in kinds.items():
        cond = values < HALF
        calls: dict[str, Callable[[], Any]] = {
            "asarray": partial(_as_arrays, cond, values, out),
            "numpy": partial(np.where, cond, values, 0),
            "where": into(where, (cond, values, 0), out),
        }
        show(name, calls)


def _as_arrays(cond: Any, values: Any, out: Any) -> None:
    where(np.asarray(cond), np.asarray(values), 0, out=out)


def select(_options: argparse.Namespace) -> None:
    """Compare te_select.select with numpy.select, and with one pass of plain C."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "chain.c"), Path(folder, "chain.so")
        source.write_text(CHAIN)
        options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
        subprocess.run(["cc", *options, "-o", made, source], check=True)
        chain = ctypes.CDLL(str(made)).chain
    for n in (10**4, 10**6, 10**7):
        conds = [rng.random(n) < 1 / CONDS for _ in range(CONDS)]
        out = np.empty(n, np.float32)
        arrays = [rng.random(n, np.float32) for _ in conds]
        for name, choices in ("arrays", arrays), ("numbers", list(np.arange(CONDS, dtype="f4"))):
            numpys, ours = (partial(each, conds, choices) for each in (np.select, te_select.select))
            show(f"{n} {name}", {"numpy": numpys, "fresh": ours, "out=": partial(ours, out=out)})
        lists = [(ctypes.c_void_p * CONDS)(*(x.ctypes.data for x in xs)) for xs in (conds, arrays)]
        in_c = partial(chain, *lists, ctypes.c_void_p(out.ctypes.data), ctypes.c_long(n))
        show(f"{n} out=", {"C": in_c, "ours": partial(te_select.select, conds, arrays, out=out)})


def bits(options: argparse.Namespace) -> None:
    """Compare masks of bits with one of NumPy, over sizes."""
    pandas, polars, pyarrow = map(importlib.import_module, ("pandas", "polars", "pyarrow"))
    rng = np.random.default_rng(0)
    for exponent in options.sizes:
        elements = 10**exponent
        mask = rng.random(elements) < HALF
        x, y = rng.random((2, elements), np.float32)
        masks = {
            "numpy": mask,
            "pyarrow": pyarrow.array(mask),
            "with an offset": pyarrow.array(np.concatenate([mask[:3], mask]))[3:],
            "polars": polars.Series(mask),
            "pandas": pandas.Series(mask, dtype="bool[pyarrow]"),
        }
        for name, other in (("number", 0.0), ("array", y)):
            calls = {each: into(where, (masks[each], x, other), x.copy()) for each in masks}
            show(f"{elements:>10} {name:6}", calls, ROUNDS)


def others(_options: argparse.Namespace) -> None:
    """Compare dask's blocks with its own where."""
    da = importlib.import_module("dask.array")
    rng = np.random.default_rng(0)
    x = rng.random(NEIGHBOURS, np.float32)
    mask = rng.random(NEIGHBOURS) < HALF
    lazy = [da.from_array(each, chunks=NEIGHBOURS // 8) for each in (mask, x, x)]
    ways = {"dask": lambda: da.where(*lazy).compute(), "ours": lambda: where(*lazy).compute()}
    show("dask", ways)


def process(_options: argparse.Namespace) -> None:
    """Time a new process to its first result with a warm cache, beyond importing NumPy."""
    imports = "import time, numpy as np; t = time.perf_counter(); "
    use = "import te_select; te_select.where(np.ones(9, bool), np.ones(9), 0); "
    code = imports + use + "print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    seconds = sorted(
        float(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)
        for _ in range(9)
    )
    print(
        f"first result {seconds[4] * 1e3:.0f} ms after import numpy (best {seconds[0] * 1e3:.0f})"
    )


SECTIONS = {
    "numpy": against_numpy,
    "torch": against_torch,
    "compiled": against_compiled,
    "converted": converted,
    "fresh": fresh,
    "in_place": in_place,
    "small": small_calls.kernels,
    "left": small_calls.left,
    "neighbours": neighbours,
    "select": select,
    "bits": bits,
    "others": others,
    "process": process,
}


def main() -> None:
    """Run the sections that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, prog=Path(__file__).name)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="what to measure")
    parser.add_argument("--sizes", type=_numbers, default=SIZES, help="powers of ten, 3,4,5")
    parser.add_argument("--dtypes", type=lambda text: text.split(","), default=DTYPES)
    options = parser.parse_args()
    for name in options.sections or SECTIONS:
        print(f"== {name}")
        SECTIONS[name](options)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


if __name__ == "__main__":
    main()
