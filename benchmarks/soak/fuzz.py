"""Random workloads, configs, targets, threads and profiles: every kernel passes `verify`.

So it selects NumPy's bits wherever the operands lie, in place too, and touches no other byte.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import te_select
from soak import draws
from soak.found import Found
from te_select.compiler import build, scheduling
from te_select.verify.verify import verify_kernel

_THREADS = (1, 2, 3, 7)


def attack(seed: int, found: Found, kernels: int = 25) -> None:
    """Compile a library of random workloads, and check each of its kernels."""
    rng = np.random.default_rng(seed)
    targets = draws.targets()
    target = targets[int(rng.integers(len(targets)))]
    drawn = [draws.workload(rng) for _ in range(kernels - 1)] + [draws.large(rng)]
    configs = {each: draws.config(rng, each, target) for each in drawn}
    os.environ["TE_SELECT_NUM_THREADS"] = threads = str(rng.choice(_THREADS))
    os.environ["TE_SELECT_PROFILE"] = profile = draws.profile(rng)
    found.doing(f"compiling {len(configs)} workloads for {target.name}")
    chosen = [scheduling.schedule(each, target, config=c) for each, c in configs.items()]
    folder = Path(tempfile.mkdtemp())
    try:
        build.build_scheduled(chosen, folder / "fuzz.so", target)
        loaded = te_select.load(folder / "fuzz.so")
    finally:
        shutil.rmtree(folder)
    library = {loaded.workload.name: loaded} if isinstance(loaded, te_select.Kernel) else loaded
    for workload, config in configs.items():
        label = f"{workload}, target {target.name}, {config}, {threads} threads, {profile}"
        check(library[workload.name], label, seed, found)


def check(kernel: Any, label: str, seed: int, found: Found) -> None:
    """Check a kernel on data of a seed; the label says in messages what it is."""
    found.doing(f"checks of {label}")
    results = verify_kernel(kernel, seed)
    found.tried("checks of kernels", len(results))
    for result in results:
        if not result.passed:
            found.failed(f"{label}: {result.check}, sizes {result.sizes}: {result.message}")
