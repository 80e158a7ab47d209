"""The recorder of where(), for a profile."""

import pytest

from tests.support import where_recorder


@pytest.fixture
def where(monkeypatch):
    """Makes the recorder; see `where_recorder.Recorder`."""
    return lambda **how: where_recorder.Recorder(where_recorder.build(), monkeypatch, **how)


@pytest.fixture
def alone(where):
    """The recorder for calls of one thread."""
    return where()
