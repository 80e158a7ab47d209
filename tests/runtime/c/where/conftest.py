"""The recorder of where(), for a profile."""

import pytest

from tests.support import where_recorder


@pytest.fixture(scope="session")
def where_half(tmp_path_factory):
    return where_recorder.build(tmp_path_factory.mktemp("where"))


@pytest.fixture
def where(where_half, tmp_path, monkeypatch):
    """Makes the recorder; see `where_recorder.Recorder`."""
    return lambda **how: where_recorder.Recorder(where_half, tmp_path, monkeypatch, **how)


@pytest.fixture
def alone(where):
    """The recorder for calls of one thread."""
    return where()
