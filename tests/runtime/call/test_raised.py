"""An exception of a signal handler during a call belongs to the program, whatever its class."""

import functools
import signal

import numpy as np
import pytest

from te_select.errors import caught
from te_select.runtime.call import raised
from tests.support.runtime_standin import kernel
from tests.support.workloads import flat

W = flat(8)
COND = np.array([1, 0] * 4, bool)
THEN = np.ones(8, "f4")
ELSE = np.zeros(8, "f4")


class Alarm(Exception):
    pass


class Handler:
    def __call__(self, number, frame):
        del number, frame
        raise Alarm


class Owner:
    def handle(self, number, frame):
        del number, frame
        raise Alarm


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
    "object": (Handler(), Alarm),
    "method": (Owner().handle, Alarm),
    "partial": (functools.partial(forgetful), ValueError),
    "replaced": (replaced, TypeError),
    "replaced, of any arguments": (replaced_of_any_arguments, TypeError),
    "forgetful": (forgetful, ValueError),
}


@pytest.fixture(params=HANDLERS)
def handler(request):
    function, error = HANDLERS[request.param]
    before = signal.signal(signal.SIGALRM, function)
    yield error
    signal.signal(signal.SIGALRM, before)


def test_exception_of_a_handler_is_not_caught(handler):
    with pytest.raises(handler) as passed:
        try:
            signal.raise_signal(signal.SIGALRM)
        except caught(Exception):
            pass
    assert type(passed.value) is handler


def test_refusals_and_conversions_are_told_from_other_errors():
    function = kernel(W).function

    def error_of(*arguments):
        with pytest.raises(Exception, match=r"\w") as refused:
            function(*arguments)
        return refused.value

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
