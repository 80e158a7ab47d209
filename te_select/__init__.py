"""te-select: fast, verified kernels for Select, also called Where.

``out = cond ? then : else``, broadcast by the rules of ONNX, OpenVINO and oneDNN. TVM compiles it
into shared libraries that load without TVM. Importing te_select imports neither tvm nor a compiler.
"""

from te_select.base import interrupts  # noqa: F401 - the first, as it handles Ctrl-C

# isort: split
from typing import TYPE_CHECKING, Any

from te_select.base import forks, variables
from te_select.base.imports import broken_torch_explained, not_installed
from te_select.base.version import __version__
from te_select.errors import (
    ArgumentError,
    ArtifactError,
    BroadcastError,
    DTypeError,
    ModelError,
    SelectError,
    TargetError,
    ToolchainError,
    TuningError,
)
from te_select.operator.workload import Workload

if TYPE_CHECKING:
    from te_select.compiler.compile import compile
    from te_select.compiler.export import export
    from te_select.frontends import ModelNode, read_model
    from te_select.records.log import Record
    from te_select.runtime.call.kernel import Kernel
    from te_select.runtime.call.loading import Library, load
    from te_select.selecting import copyto, putmask, select, where
    from te_select.tuning.tune import tune

variables.have_a_cache()
_LAZY = {
    "Kernel": "te_select.runtime.call.kernel",
    "Library": "te_select.runtime.call.loading",
    "ModelNode": "te_select.frontends",
    "Record": "te_select.records.log",
    "compile": "te_select.compiler.compile",
    "copyto": "te_select.selecting",
    "export": "te_select.compiler.export",
    "load": "te_select.runtime.call.loading",
    "putmask": "te_select.selecting",
    "read_model": "te_select.frontends",
    "select": "te_select.selecting",
    "tune": "te_select.tuning.tune",
    "where": "te_select.selecting",
}

_ROOMS = frozenset({"ma", "numpy", "onnxruntime"})  # modules that are imported when they are used

__all__ = [
    "ArgumentError",
    "ArtifactError",
    "BroadcastError",
    "DTypeError",
    "Kernel",
    "Library",
    "ModelError",
    "ModelNode",
    "Record",
    "SelectError",
    "TargetError",
    "ToolchainError",
    "TuningError",
    "Workload",
    "__version__",
    "compile",
    "copyto",
    "export",
    "load",
    "putmask",
    "read_model",
    "select",
    "tune",
    "where",
]


def __getattr__(name: str) -> Any:
    """Import a public name that needs tvm-ffi or tvm, on first use."""
    if name not in _LAZY and name not in _ROOMS:
        raise AttributeError(f"module 'te_select' has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - kept off the import path

    variables.warn_of_unknown()
    try:
        with forks.no_fork_during(), broken_torch_explained():
            if name in _ROOMS:
                return importlib.import_module(f"te_select.{name}")
            value = getattr(importlib.import_module(_LAZY[name]), name)
    except ModuleNotFoundError as error:
        raise not_installed(f"te_select.{name}", error) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted(__all__)
