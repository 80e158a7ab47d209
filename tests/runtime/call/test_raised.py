"""An exception of a signal handler during a call belongs to the program, whatever its class."""

import functools
import gc
import signal

import numpy as np
import pytest

from te_select import Workload
from te_select.runtime.call import raised
from tests.support.runtime_standin import kernel

W = Workload((8,), (8,), (8,), "float32")
COND, THEN, ELSE = np.array([1, 0] * 4, bool), np.ones(8, "f4"), np.zeros(8, "f4")


class Alarm(Exception):
    pass


class Handler:
    def __call__(self, _number, _frame):
        raise Alarm


class Owner:
    def handle(self, _number, _frame):
        raise Alarm


def ordinary(_number, _frame):
    raise Alarm


def looks_like_a_refusal(_number, _frame):
    raise ValueError("select_float32: out has shape [4]; expected [8]")


def looks_like_a_conversion(*_):
    raise BufferError("Cannot export readonly array")


def replaced(_number, _frame):
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    raise TypeError("by a handler that is no handler any more")


def replaced_of_any_arguments(*_):
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    raise TypeError("by a handler that is no handler any more")


def forgetful(number, frame):
    del number, frame
    raise ValueError("by a handler that is known by its code alone")


HANDLERS = {
    "function": (ordinary, Alarm),
    "object": (Handler(), Alarm),
    "method": (Owner().handle, Alarm),
    "partial": (functools.partial(ordinary), Alarm),
    "like a refusal": (looks_like_a_refusal, ValueError),
    "like a conversion": (looks_like_a_conversion, BufferError),
    "replaced": (replaced, TypeError),
    "replaced, of any arguments": (replaced_of_any_arguments, TypeError),
    "forgetful": (forgetful, ValueError),
    "forgetful partial": (functools.partial(functools.partial(forgetful)), ValueError),
}


@pytest.fixture(params=HANDLERS)
def handler(request):
    function, error = HANDLERS[request.param]
    before = signal.signal(signal.SIGALRM, function)
    gc.disable()  # JAX lets the collector call Python, and exceptions there are lost
    yield function, error
    gc.enable()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class Interrupting:
    """An operand that is interrupted while it is passed on."""

    shape = (8,)

    def __dlpack_device__(self):
        signal.raise_signal(signal.SIGALRM)
        return (1, 0)

    def __dlpack__(self, **_):
        return THEN.__dlpack__()


@pytest.mark.parametrize("operand", ["cond", "then", "else_", "out"])
def test_exception_of_a_handler_passes_through_operands(handler, operand):
    given = {"cond": COND, "then": THEN, "else_": ELSE, "out": np.empty_like(THEN)}
    given[operand] = Interrupting()
    with pytest.raises(handler[1]) as caught:
        kernel(W)(**given)
    assert type(caught.value) is handler[1]


def test_no_exception_of_a_timer_is_lost_in_a_loop_of_calls(handler):
    k, error = kernel(W), handler[1]
    readonly = THEN.copy()
    readonly.flags.writeable = False
    sides = [THEN, readonly, THEN[::-1]]  # taken as it is, refused by NumPy, refused by the kernel
    for side in sides:  # the first call of each imports modules, where Python itself loses some
        k(COND, side, ELSE)
    seen = 0
    for i in range(400):
        signal.signal(signal.SIGALRM, handler[0])
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + i % 97))
            for _ in range(10_000):  # the timer ends long before
                for side in sides:
                    k(COND, side, ELSE)
        except error as caught:
            assert type(caught) is error
            seen += 1
    assert seen == 400


def test_refusals_and_conversions_are_told_from_other_errors():
    function = kernel(W).function

    def error_of(*arguments):
        try:
            function(*arguments)
        except Exception as error:
            return error
        raise AssertionError("nothing was raised")

    readonly = THEN.copy()
    readonly.flags.writeable = False
    assert raised.is_refusal(error_of(COND, THEN, ELSE, THEN[:4].copy()))
    assert raised.is_refusal(error_of(COND, readonly, ELSE, THEN.copy()))
    assert not raised.is_refusal(ValueError("made here"))
    failing = kernel(W, status=1).function
    try:
        failing(COND, THEN, ELSE, THEN.copy())
    except RuntimeError as error:
        assert not raised.is_refusal(error)


def test_kernel_that_fails_runs_once(monkeypatch):
    failing = kernel(W, status=1)
    calls = []

    def counted(function):
        return lambda *arguments: (calls.append(arguments), function(*arguments))[1]

    for name in ("function", "_try", "_bits"):
        monkeypatch.setattr(failing, name, counted(getattr(failing, name)))
    for sides in ((THEN, ELSE), (THEN[::-1], ELSE)):
        calls.clear()
        with pytest.raises(RuntimeError, match="the kernel failed"):
            failing(COND, *sides)
        ran = [arguments for arguments in calls if all(a.flags.c_contiguous for a in arguments)]
        assert len(ran) == 1
