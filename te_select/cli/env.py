"""``te-select env``: what a machine and its Python installation offer.

Nothing is imported to find a version, so the report also works if tvm is missing or broken.
"""

import os
import platform
from typing import Any

from te_select.base import kinds, variables, version
from te_select.cli.console import show
from te_select.cli.flags import Json

_PACKAGES = {
    "te_select": ("te-select", "te-select-runtime"),
    "tvm": ("apache-tvm",),
    "tvm_ffi": ("apache-tvm-ffi",),
    **{name: (name,) for name in ("numpy", "ml_dtypes", "torch", "jax")},
    "cupy": ("cupy-cuda12x", "cupy-cuda13x", "cupy"),
    "nvrtc": ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12"),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    **{name: (name,) for name in ("triton", "halide", "onnx", "matplotlib")},
}
_VARIABLES = (
    "AR", "CC", "CUDA_HOME", "CUDA_PATH", "OBJCOPY", "OMP_NUM_THREADS", *variables.KNOWN, "TMPDIR",
)  # fmt: skip


def environment() -> dict[str, Any]:
    """Describe this machine and installation.

    Returns
    -------
    dict
        Sections of JSON types: ``versions``, ``variables``, ``unknown_variables``, and those of
        every kind of machine: ``cpu``, ``caches``, ``profile``, ``toolchains`` and ``gpus``.
        Missing things are None.
    """
    versions = {name: version.installed(*named) for name, named in _PACKAGES.items()}
    found: dict[str, Any] = {
        "versions": {"python": platform.python_version(), **versions},
        "variables": {name: os.environ.get(name) for name in _VARIABLES},
        "unknown_variables": variables.unknown(),
    }
    for kind in kinds.KINDS.values():
        for section, values in kinds.load(kind.environment)().items():
            found.setdefault(section, {}).update(values)
    return found


def env_command(as_json: Json = False) -> None:
    """Show versions, CPU features, caches, GPUs and toolchains.

    Example: te-select env --json
    """
    show(environment(), as_json)
