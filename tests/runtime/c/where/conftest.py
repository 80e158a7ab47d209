"""The recorder of where(), for a profile."""

from pytest import fixture

from tests.support import where_recorder


@fixture
def where(monkeypatch):
    """Makes the recorder; see `where_recorder.Recorder`."""
    return lambda **how: where_recorder.Recorder(where_recorder.build(), monkeypatch, **how)


@fixture
def alone(where):
    """The recorder for calls of one thread."""
    return where()
