"""Where by te-select inside ONNX Runtime.

The library of `te_select.where` is also a plug-in execution provider of ONNX Runtime: in a session
that has it, Where nodes run kernels of te-select on the session's threads.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from typing import TYPE_CHECKING, Any

from te_select.errors import ArgumentError, ToolchainError, caught
from te_select.selecting.kernels import library

if TYPE_CHECKING:
    from onnxruntime import SessionOptions

__all__ = ["calls", "providers", "register"]

OURS, OF_CPU = "TeSelectExecutionProvider", "CPUExecutionProvider"
_OLDEST = (1, 24)  # the first release that takes kernels from plug-ins
_registered: weakref.WeakKeyDictionary[SessionOptions, Any] = weakref.WeakKeyDictionary()
_libraries: dict[
    int, ctypes.CDLL
] = {}  # also those unregistered since: sessions may still run them


def register(session_options: SessionOptions) -> None:
    """Let sessions run the Where nodes of their models by te-select.

    It has no effect on a session that is made with ``providers=``: ONNX Runtime then drops the
    providers of the options, with a UserWarning. Such a session takes the list of `providers`.

    Parameters
    ----------
    session_options
        The options of sessions that are made later. Other providers that they have come first. The
        kernels are built once, and cached.

    Raises
    ------
    ArgumentError
        If it is no ``onnxruntime.SessionOptions``, or the program has unregistered its provider.
    ToolchainError
        If onnxruntime is missing, is older than 1.24, or does not take the library.
    SelectError
        If the kernels cannot be built, or not be kept in the cache.

    Notes
    -----
    The options get two providers: ours, and ONNX Runtime's own for the CPU, which runs all other
    nodes. A session whose options have that one already cannot be made.
    ``te-select onnxruntime build`` writes the library for programs in other languages.
    """
    onnxruntime = _onnxruntime()
    if not isinstance(session_options, onnxruntime.SessionOptions):
        raise ArgumentError(
            f"session_options is {session_options!r}; expected an onnxruntime.SessionOptions"
        )
    if session_options in _registered:
        found = [each.ep_metadata for each in _devices(onnxruntime, OURS)]
        if _registered[session_options] not in found:  # other registrations have other metadata
            raise ArgumentError(
                "the provider of session_options was unregistered, and a session would crash; "
                "expected new SessionOptions"
            )
        return
    _register_library(onnxruntime)
    device = _devices(onnxruntime, OURS)[0]
    for each in (device, _devices(onnxruntime, OF_CPU)[0]):
        session_options.add_provider_for_devices([each], {})
    _registered[session_options] = device.ep_metadata


def providers() -> list[str]:
    """What to give a session as ``providers=``: te-select's provider, and the CPU's.

    Returns
    -------
    list of str
        The names. Those of other devices, such as ``"CUDAExecutionProvider"``, go before them.

    Raises
    ------
    ToolchainError
        If onnxruntime is missing, is older than 1.25, or does not take the library.
    SelectError
        If the kernels cannot be built, or not be kept in the cache.
    """
    onnxruntime = _onnxruntime()
    _register_library(onnxruntime)
    if OURS not in onnxruntime.get_available_providers():
        raise ToolchainError(
            f"onnxruntime {onnxruntime.__version__} takes no plug-ins in providers=; expected "
            "1.25 or newer, or te_select.onnxruntime.register(session_options) and no providers="
        )
    return [OURS, OF_CPU]


def calls() -> int:
    """How many Where nodes te-select has run so far, in the sessions of this process.

    If it stays as it is, the session was made with a ``providers=`` that does not name te-select.
    Or ONNX Runtime runs all nodes itself: those of strings, those of two sides that come from
    DequantizeLinear, and those of constants, when it loads the model.
    """
    onnxruntime = sys.modules.get("onnxruntime")
    if not hasattr(onnxruntime, "get_ep_devices"):
        return 0
    _find_loaded(onnxruntime)
    return sum(each.te_select_ort_calls() for each in _libraries.values())


def _onnxruntime() -> Any:
    """The package, of a release that takes our library."""
    try:
        import onnxruntime  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        raise ToolchainError(
            "te_select.onnxruntime needs the onnxruntime package; pip install onnxruntime"
        ) from error
    version = onnxruntime.__version__
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise ToolchainError(
            f"onnxruntime {version} takes no kernels from plug-ins; expected "
            f"{'.'.join(map(str, _OLDEST))} or newer"
        )
    return onnxruntime


def _devices(onnxruntime: Any, provider: str) -> list[Any]:
    return [each for each in onnxruntime.get_ep_devices() if each.ep_name == provider]


def _find_loaded(onnxruntime: Any) -> bool:
    """Whether ONNX Runtime has a library of ours; each is remembered, for its count of calls."""
    devices = _devices(onnxruntime, OURS)
    for each in devices:
        loaded = ctypes.CDLL(each.ep_metadata["library_path"])  # the same image
        loaded.te_select_ort_calls.restype = ctypes.c_int64
        _libraries[loaded._handle] = loaded
    return bool(devices)


def _register_library(onnxruntime: Any) -> None:
    """Give ONNX Runtime the library, once a process. A session needs it as long as it lives."""
    if _find_loaded(onnxruntime):
        return
    path = str(library.whole_file())
    failure: Any = None
    try:
        onnxruntime.register_execution_provider_library(OURS, path)
    except caught(Exception) as error:  # ONNX Runtime has exceptions of its own
        failure = error
    if not _find_loaded(onnxruntime):  # nor by another thread
        raise ToolchainError(
            f"onnxruntime {onnxruntime.__version__} does not take {path}: {failure}"
        ) from failure
