"""The errors and warnings of te_select, and how it catches those of others.

Every message names the offending value and what would have been accepted. If a call raises one of
these errors, nothing was written to ``out``.

A signal handler may raise at any moment, and its exception belongs to the program. So exceptions of
Python and of other libraries are caught by ``except caught(OSError)`` and ``suppress`` only.
"""

import _signal  # type: ignore[import-not-found] # signal loses a ValueError of a handler
import contextlib
import functools
import inspect
import sys
import warnings
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, TypeVar

_DISTRIBUTIONS = {"tvm": "apache-tvm", "tvm_ffi": "apache-tvm-ffi"}  # that are named otherwise
_Kind = TypeVar("_Kind", bound=Exception)
_warned_of: set[str] = set()
_BETWEEN = ("te_select", "contextlib")  # packages of frames between a warning and the caller


class SelectError(Exception):
    """Base of every error of te_select."""


class BroadcastError(SelectError, ValueError):
    """Shapes, an axis or a rule that make no workload."""


class ArgumentError(SelectError, ValueError):
    """An argument that cannot be taken: a tensor's shape, layout, device or memory, or a value."""


class DTypeError(SelectError, TypeError):
    """An element type that a workload, a system or a kernel does not take."""


class TargetError(SelectError, ValueError):
    """A target that is unknown, or that this machine cannot run."""


class ArtifactError(SelectError, RuntimeError):
    """A shared library or manifest that is missing, damaged, or not for this machine."""


class ToolchainError(SelectError, RuntimeError):
    """A compiler or linker that is missing or fails."""


class NotInstalledError(ToolchainError, AttributeError):
    """Something needs a package that is not there, as in te-select-runtime.

    It is an AttributeError for `hasattr` and `help`, which ask for names such as `te_select.tune`.
    """


class TuningError(SelectError, RuntimeError):
    """A tuning session or tuning logs that cannot be used."""


class ModelError(SelectError, ValueError):
    """A model file that cannot be read."""


def caught(*kinds: type[_Kind]) -> tuple[type[_Kind], ...]:
    """What an ``except`` catches of some kinds: nothing if a signal handler raised the exception.

    Python evaluates it once there is an exception.
    """
    error = sys.exc_info()[1]
    return () if isinstance(error, kinds) and _is_of_signal_handler(error) else kinds


def asked(value: Any, name: str, default: Any = None) -> Any:
    """An attribute of another library's object; the default also if asking for it raises."""
    try:
        return getattr(value, name, default)
    except caught(Exception):
        return default


def is_a(value: Any, kind: type[Any]) -> bool:
    """Whether another library's object is of a type; not if its ``__class__`` raises."""
    try:
        return isinstance(value, kind)
    except caught(Exception):
        return False


@contextlib.contextmanager
def suppress(*kinds: type[Exception]) -> Iterator[None]:
    """Suppress exceptions of some kinds, unless a signal handler raised them."""
    try:
        yield
    except caught(*kinds):
        return


def _is_of_signal_handler(error: BaseException) -> bool:
    """Whether an exception passed through a signal handler of this process, written in Python."""
    handlers = {_code_of(_signal.getsignal(each)) for each in range(1, _signal.NSIG)} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code in handlers or _was_given_its_caller(frame):
            return True
        traceback = traceback.tb_next
    return False


def _code_of(handler: Any) -> CodeType | None:
    """The code that a handler runs, if it is written in Python."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not callable(handler):  # no handler, SIG_DFL or SIG_IGN
        return None
    routine = handler if inspect.isroutine(handler) else type(handler).__call__
    code = getattr(inspect.unwrap(routine), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _was_given_its_caller(frame: FrameType) -> bool:
    """Whether a function got the frame that it interrupted, as a signal handler does.

    This recognizes a handler that installed another handler before it raised.
    """
    caller = frame.f_back
    given = frame.f_locals.values()
    return caller is not None and any(
        value is caller
        or (issubclass(type(value), tuple) and any(each is caller for each in value))
        for value in given
    )


def not_installed(what: str, error: ModuleNotFoundError) -> NotInstalledError:
    """The error of something whose module is not there."""
    needed = f"{what} needs {error.name}, which is not installed"
    return NotInstalledError(f"{needed}; {_how_to_install(str(error.name).partition('.')[0])}")


def _how_to_install(module: str) -> str:
    """How a module is installed; an index may have another's te-select (SECURITY.md)."""
    if module == "te_select":
        return "install the wheel of te-select by its path, or a clone of it"
    return f"pip install {_DISTRIBUTIONS.get(module, module)}"


def warn(text: str, once: str = "") -> None:
    """Warn at the line that has called te_select, however deep the reason lies.

    Where a filter makes errors of warnings, the text is shown, and the call goes on. Of what has
    one name in ``once``, only the first warning in a process is given.
    """
    if once in _warned_of:
        return
    _warned_of.update([once] if once else [])
    level = 2
    frame = sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=level)
    except caught(RuntimeWarning) as error:
        warnings.showwarning(error, RuntimeWarning, frame.f_code.co_filename, frame.f_lineno)


@contextlib.contextmanager
def broken_torch_explained() -> Iterator[None]:
    """Say so if tvm-ffi cannot be imported because of torch, which it imports if it finds it.

    Torch that fails with an ImportError does no harm, and tvm-ffi has no switch for the others.
    """
    try:
        yield
    except SelectError:
        raise
    except caught(Exception) as error:
        place = error.__traceback__
        importing = False
        while place is not None:
            module = str(place.tb_frame.f_globals.get("__name__"))
            code = place.tb_frame.f_code
            importing |= module == "tvm_ffi" and code.co_name == "<module>"
            if importing and ("torch" in module or "torch" in str(error)):
                raise ToolchainError(
                    f"torch is installed but broken ({type(error).__name__}: {error}), and tvm-ffi "
                    "imports it with itself; install torch again, or uninstall it"
                ) from error
            place = place.tb_next
        raise
