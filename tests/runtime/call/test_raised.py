"""An exception of a signal handler during a call belongs to the program, whatever its class."""

import functools
import signal
from signal import SIG_IGN, SIGALRM

from pytest import fixture, raises

from te_select.errors import caught
from te_select.runtime.call.raised import is_refusal
from tests.support import flat
from tests.support.runtime_standin import ARGS, kernel

W = flat(8)
COND, THEN, ELSE = ARGS


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
    signal.signal(SIGALRM, SIG_IGN)
    raise TypeError("by a handler that is no handler any more")


def replaced_of_any_arguments(*_):
    signal.signal(SIGALRM, SIG_IGN)
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


@fixture(params=HANDLERS)
def handler(request):
    function, error = HANDLERS[request.param]
    before = signal.signal(SIGALRM, function)
    yield error
    signal.signal(SIGALRM, before)


def test_exception_of_a_handler_is_not_caught(handler):
    with raises(handler) as passed:
        try:
            signal.raise_signal(SIGALRM)
        except caught(Exception):
            pass
    assert type(passed.value) is handler


def test_refusals_and_conversions_are_told_from_other_errors():
    function = kernel(W).function

    def error_of(*arguments):
        with raises(Exception, match=r"\w") as refused:
            function(*arguments)
        return refused.value

    readonly = THEN.copy()
    readonly.flags.writeable = False
    assert is_refusal(error_of(COND, THEN, ELSE, THEN[:4].copy()))
    assert is_refusal(error_of(COND, readonly, ELSE, THEN.copy()))
    assert not is_refusal(ValueError("made here"))
    failing = kernel(W, status=1).function
    try:
        failing(COND, THEN, ELSE, THEN.copy())
    except RuntimeError as error:
        assert not is_refusal(error)


def test_kernel_that_fails_runs_once(monkeypatch):
    failing = kernel(W, status=1)
    calls = []

    def counted(function):
        return lambda *arguments: (calls.append(arguments), function(*arguments))[1]

    for name in ("function", "_try", "_bits"):
        monkeypatch.setattr(failing, name, counted(getattr(failing, name)))
    for sides in ((THEN, ELSE), (THEN[::-1], ELSE)):
        calls.clear()
        with raises(RuntimeError, match="the kernel failed"):
            failing(COND, *sides)
        ran = [arguments for arguments in calls if all(a.flags.c_contiguous for a in arguments)]
        assert len(ran) == 1
