"""What a machine and its Python installation offer: the report of ``te-select env``.

Nothing is imported to find a version, so the report also works where tvm is missing or broken.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from te_select.machines.cuda import compilers
from te_select.runtime.cpu import features
from te_select.runtime.cuda import driver

_PACKAGES = {
    "te_select": ("te-select",),
    "tvm": ("apache-tvm",),
    "tvm_ffi": ("apache-tvm-ffi",),
    "numpy": ("numpy",),
    "ml_dtypes": ("ml_dtypes",),
    "torch": ("torch",),
    "jax": ("jax",),
    "cupy": ("cupy-cuda12x", "cupy-cuda13x", "cupy"),
    "triton": ("triton",),
    "nvrtc": ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12"),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "openvino": ("openvino",),
    "numexpr": ("numexpr",),
}
_VARIABLES = ("OMP_NUM_THREADS", "TE_SELECT_NUM_THREADS")
_SECONDS = 10  # a driver that hangs must not hang the report
_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def environment() -> dict[str, Any]:
    """Describe this machine and installation.

    Returns
    -------
    dict
        Sections of JSON types: ``versions``, ``cpu``, ``caches``, ``toolchains``, ``variables`` and
        ``gpus``. What is not there is None, and of no GPU it says why.
    """
    return {
        "versions": {"python": platform.python_version(), **_versions()},
        "cpu": _cpu(),
        "caches": _caches(),
        "toolchains": {"c_compiler": _c_compiler(), "cuda_compiler": compilers.describe()},
        "variables": {name: os.environ.get(name) for name in _VARIABLES},
        "gpus": _gpus(),
    }


def _versions() -> dict[str, str | None]:
    return {name: _version(packages) for name, packages in _PACKAGES.items()}


def _version(packages: tuple[str, ...]) -> str | None:
    for package in packages:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def _cpu() -> dict[str, Any]:
    cores = set()
    package = ""
    for line in _read(_CPUINFO).splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "physical id":
            package = value
        elif key == "core id":
            cores.add((package, value))
    return {
        "name": features.cpu_name(),
        "architecture": platform.machine(),
        "cores": len(cores) or None,
        "threads": os.cpu_count(),
        "threads_allowed": len(os.sched_getaffinity(0)),
        "features": sorted(features.features()),
    }


def _caches() -> dict[str, str]:
    """Sizes by level, such as ``"L1 Data": "48K"``; empty where the system hides them."""
    found = {}
    for folder in sorted(_CACHES.glob("index*")):
        level, kind, size = (_read(folder / name).strip() for name in ("level", "type", "size"))
        found[f"L{level} {kind}"] = size
    return found


def _c_compiler() -> str | None:
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and (line := _first_line(name, "--version")):
            return f"{shutil.which(name)}: {line}"
    return None


def _gpus() -> dict[str, str | None]:
    """CUDA devices by number, and the driver's version; or why there are none."""
    try:
        found = driver.devices()
    except driver.CudaError as error:
        return {"none": str(error)}
    query = ("--query-gpu=driver_version", "--format=csv,noheader")
    described = {
        f"device {device.index}": f"{device.name}, {device.arch}, {device.memory / 2**30:.0f} GiB, "
        f"L2 {device.l2 / 2**20:.0f} MiB"
        for device in found
    }
    return {**described, "driver": _first_line("nvidia-smi", *query)}


def _first_line(program: str, *arguments: str) -> str | None:
    lines = _output(program, *arguments).splitlines()
    return lines[0] if lines else None


def _output(program: str, *arguments: str) -> str:
    path = shutil.which(program)
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
