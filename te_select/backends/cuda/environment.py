"""The report of ``te-select env`` about CUDA: the devices, the driver and the compiler."""

from __future__ import annotations

from typing import Any

from te_select.backends.cuda import compilers
from te_select.backends.programs import first_line
from te_select.runtime.call.cuda import driver


def environment() -> dict[str, dict[str, Any]]:
    """The sections ``toolchains`` and ``gpus``; without a GPU, the reason."""
    return {"toolchains": {"cuda_compiler": compilers.describe()}, "gpus": _gpus()}


def _gpus() -> dict[str, str | None]:
    """CUDA devices by number, and the driver's version; or why there are none."""
    try:
        found = driver.devices()
    except driver.CudaError as error:
        return {"none": str(error)}
    described = {
        f"device {device.index}": f"{device.name}, {device.arch}, {device.memory / 2**30:.0f} GiB, "
        f"L2 {device.l2 / 2**20:.0f} MiB"
        for device in found
    }
    query = ("--query-gpu=driver_version", "--format=csv,noheader")
    return {**described, "driver": first_line("nvidia-smi", *query)}
