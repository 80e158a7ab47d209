"""A timer raises during calls: a signal handler's exception is never lost, and never changed.

Every kind of operand takes another way through a call: tensors that the compiled code takes
directly, types that NumPy or torch cannot pass on, arrays that must be copied, scalars. Kernels are
compiled, exported, loaded and pickled, too. The timer also raises classes that a call itself may
raise. Only their origin tells these apart.
"""

import contextlib
import functools
import gc
import random
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tvm_ffi

import te_select
from soak.found import Found

_ELEMENTS = 64
_LONGEST = 100e-6  # seconds until the timer raises; a call takes 1 to 30 us
_CALLS = 100_000  # the timer raises long before
_TEXT = "raised by a handler"
Raised = type[BaseException]
Call = tuple[Callable[[], Any], Callable[[], None]]  # a call, and a check of what it has written


class Alarm(Exception):
    """An ordinary exception of a program."""


class Stop(BaseException):
    """An exception like KeyboardInterrupt, which is not an ``Exception``."""


def attack(seed: int, found: Found, interrupts: int = 10_000) -> None:
    """Interrupt calls of every kind by every class of exception, ``interrupts`` times."""
    rng = random.Random(seed)
    calls = _calls(seed)
    raised: tuple[Raised, ...] = (Alarm, ValueError, TypeError, BufferError, RuntimeError, Stop)
    raised += (OSError, TimeoutError, OverflowError, FloatingPointError)
    if "torch" not in " ".join(calls):
        found.tried("rounds without torch, which is not installed")
    for what, (call, check) in calls.items():
        call()  # the first call imports modules, and Python loses some exceptions during imports
        check()
        for number in range(interrupts // len(calls)):
            kind = raised[number % len(raised)]
            found.doing(f"{kind.__name__} in calls on {what}")
            caught = _interrupted(call, kind, rng.uniform(1e-6, _LONGEST))
            found.tried("interrupted calls")
            if caught is None:
                found.failed(f"{kind.__name__} of a handler was lost in calls on {what}")
            elif type(caught) is not kind or caught.args != (_TEXT,):
                found.failed(
                    f"{kind.__name__} of a handler came out of calls on {what} as "
                    f"{type(caught).__name__}: {caught}"
                )
        call()
        check()


def _interrupted(call: Callable[[], Any], kind: Raised, seconds: float) -> BaseException | None:
    """The exception that leaves a loop of calls in which a timer raises; None if there is none."""
    with _handled(kind):
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            for _ in range(_CALLS):
                call()
        except BaseException as error:  # whatever it is, it is looked at
            return error
    return None


@contextlib.contextmanager
def _handled(kind: Raised) -> Iterator[None]:
    """Let a handler that raises take the timer's signal, without the garbage collector."""

    def handle(_number: int, _frame: object) -> None:
        raise kind(_TEXT)

    before = signal.signal(signal.SIGALRM, handle)
    collects = gc.isenabled()
    gc.disable()  # exceptions in Python code that the collector calls are lost
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if collects:
            gc.enable()


def _calls(seed: int) -> dict[str, Call]:
    """A call with operands of each kind."""
    rng = np.random.default_rng(seed)
    cond = rng.integers(0, 2, _ELEMENTS, np.uint8).view(np.bool_)
    then, else_ = (rng.random(_ELEMENTS, np.float32) for _ in range(2))
    out = np.empty_like(then)
    shape = (_ELEMENTS,)
    kernel = te_select.compile(te_select.Workload(shape, shape, shape), tuning_logs=False)
    scalar = te_select.compile(te_select.Workload(shape, shape, ()), tuning_logs=False)
    want = np.where(cond, then, else_)

    def check(values: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
        if values.tobytes() != expected.tobytes():
            raise AssertionError("a call after interrupted ones gave another result")

    spread = np.zeros(2 * _ELEMENTS, np.float32)
    spread[::2] = then
    wide_out = np.zeros(2 * _ELEMENTS, np.float32)
    ffi = tuple(tvm_ffi.from_dlpack(array) for array in (cond, then, else_, out))
    wide = else_.astype(np.float64)
    plain = functools.partial(check, out, want)
    calls: dict[str, Call] = {
        "NumPy arrays": (lambda: kernel(cond, then, else_, out=out), plain),
        "strided arrays": (lambda: kernel(cond, spread[::2], else_, out=out), plain),
        "a strided out": (
            lambda: kernel(cond, then, else_, out=wide_out[::2]),
            lambda: check(wide_out[::2], want),
        ),
        "Python scalars": (
            lambda: scalar(cond, then, 0.5, out=out),
            lambda: check(out, np.where(cond, then, np.float32(0.5))),
        ),
        "tvm-ffi tensors": (lambda: kernel(*ffi), plain),
        "the exported function": (lambda: kernel.function(*ffi), plain),
        "where() of arrays": (lambda: te_select.where(cond, then, else_, out=out), plain),
        "where() of two types": (
            lambda: te_select.where(cond, then, wide, out=wide),
            lambda: check(wide, np.where(cond, then, wide)),
        ),
    }
    with contextlib.suppress(ImportError):
        calls |= _torch_calls(kernel, scalar, (cond, then, else_, out))
    return calls


def _torch_calls(
    kernel: te_select.Kernel, scalar: te_select.Kernel, arrays: tuple[Any, ...]
) -> dict[str, Call]:
    import torch  # noqa: PLC0415 - only where it is installed

    from te_select.torch import where as of_torch  # noqa: PLC0415 - imports torch

    cond, then, else_, _ = map(torch.from_numpy, arrays)
    out = torch.empty_like(then)
    spread = torch.zeros(2 * _ELEMENTS)
    spread[::2] = then
    want = torch.where(cond, then, else_)
    recorded = then.clone().requires_grad_()

    def check(expected: Any) -> None:
        if not torch.equal(out, expected):
            raise AssertionError("a call after interrupted ones gave another result")

    return {
        "torch tensors": (lambda: kernel(cond, then, else_, out=out), lambda: check(want)),
        "te_select.torch.where": (lambda: of_torch(cond, then, else_), lambda: None),
        "te_select.torch.where with gradients": (
            lambda: of_torch(cond, recorded, else_).sum().backward(),
            lambda: None,
        ),
        "strided torch tensors": (
            lambda: kernel(cond, spread[::2], else_, out=out),
            lambda: check(want),
        ),
        "torch tensors and a scalar": (
            lambda: scalar(cond, then, 0.5, out=out),
            lambda: check(torch.where(cond, then, 0.5)),
        ),
    }
