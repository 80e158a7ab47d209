"""MetaSchedule's search, by which `open_search` proposes (test_search has what it proposes)."""

import signal

import pytest

from te_select.tuning import evolution


def test_interrupt_in_the_midst_of_tvm_comes_afterwards(monkeypatch):
    """Threads of TVM would make a RuntimeError without a text of it."""
    seen = []

    def interrupted(*_):
        signal.raise_signal(signal.SIGINT)
        seen.append("the end of it")

    with pytest.raises(KeyboardInterrupt), evolution._interrupt_afterwards():
        interrupted()
    assert seen == ["the end of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
