"""Measures ways to run the tasks of a call: alone, the pool, OpenMP and oneTBB.

Run ``python benchmarks/pools.py [--busy N]``. With ``--busy N``, N other processes compute without
end. Then the mean without the slowest 0.5 % tells more than the median. oneTBB takes part if the
package ``tbb-devel`` is installed. Contestants of one size take turns of many calls. They sleep
before each turn, because OpenMP's threads spin on after a call.
"""

import argparse
import ctypes
import functools
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tvm_ffi import libinfo

from te_select.backends.programs import c_compiler
from te_select.operator.workload import Workload
from te_select.runtime import c
from te_select.timing.cores import threads
from te_select.timing.inputs import Mask, make_operands

SIZES = (1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22)  # elements of float32
ROUNDS, TURN, PAUSE = 5, 0.3, 0.02  # turns, seconds of each, seconds of sleep before it
LEFT_OUT = 0.005
_RUNTIME = c.FOLDER
_SOURCE = Path(__file__).with_suffix(".cc")


class Work(ctypes.Structure):
    """The struct ``Work`` of pools.cc."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("cond", "then", "other", "out")),
        ("elements", ctypes.c_int64),
    )


def build(folder: Path) -> tuple[ctypes.CDLL, list[str]]:
    """Compile the contestants; the library, and their names."""
    c = c_compiler()
    includes = [f"-I{path}" for path in (_RUNTIME, _RUNTIME / "cpu", *libinfo.include_paths())]
    names = ["alone", "pool", "openmp"]
    options = []
    if (Path(sys.prefix) / "include" / "oneapi" / "tbb").is_dir():
        names.append("tbb")
        libraries = Path(sys.prefix) / "lib"
        (library,) = sorted(libraries.glob("libtbb.so.*"))[:1]
        options = ["-DWITH_TBB", f"-I{sys.prefix}/include", str(library), f"-Wl,-rpath,{libraries}"]
    compiled = [*c, "-std=gnu11", "-O2", "-fPIC", *includes]
    objects = []
    for name in ("pool", "pool_cores", "pool_team"):
        objects.append(str(folder / f"{name}.o"))
        source = str(_RUNTIME / "cpu" / f"{name}.c")
        subprocess.run([*compiled, "-c", source, "-o", objects[-1]], check=True)
    path = folder / "pools.so"
    command = [
        "c++",
        "-std=c++17",
        "-O3",
        "-march=native",
        "-fopenmp",
        "-fPIC",
        "-shared",
        *includes,
    ]
    files = [str(_SOURCE), *objects, *options, "-pthread", "-o", str(path)]
    subprocess.run([*command, *includes, *files], check=True)
    return ctypes.CDLL(str(path)), names


def turns(calls: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Seconds of every call, for contestants that take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    rng = random.Random(0)
    for _ in range(ROUNDS):
        for name, call in rng.sample(list(calls.items()), len(calls)):
            time.sleep(PAUSE)
            end = time.perf_counter() + TURN
            while (start := time.perf_counter()) < end:
                call()
                seconds[name].append(time.perf_counter() - start)
    return seconds


def main() -> int:
    """Print a row for each size and contestant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside it")
    busy = parser.parse_args().busy
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    count = threads()
    print(f"{count} threads, {busy} busy loops; microseconds a call")
    print(f"{'elements':>10} {'':8}{'median':>10}{'mean':>10}{'slowest':>10}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            library, names = build(Path(folder))
            for size in SIZES:
                operands = make_operands(Workload((size,), (size,), (size,)), Mask())
                four = (operands.cond, operands.then, operands.else_, operands.out)
                work = Work(*(array.ctypes.data for array in four), size)
                calls = {
                    name: functools.partial(library[f"run_{name}"], ctypes.byref(work), count)
                    for name in names
                }
                for name, seconds in turns(calls).items():
                    ordered = sorted(seconds)
                    most = ordered[: max(1, round(len(ordered) * (1 - LEFT_OUT)))]
                    figures = (statistics.median(ordered), statistics.fmean(most), ordered[-1])
                    shown = "".join(f"{figure * 1e6:10.1f}" for figure in figures)
                    print(f"{size:10} {name:8}{shown}", flush=True)
    finally:
        for loop in loops:
            loop.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
