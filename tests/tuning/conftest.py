"""Tuning with made-up times."""

import pytest

import te_select
from te_select.timing import cores
from te_select.tuning import session
from tests.support.tuning_fakes import SMALL, FakeMeasurer


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Tune beside programs that use so many cores; returns the record, and keeps the measurer."""

    def tune(workload=SMALL, measurer=None, busy=0.0, **options):
        tune.measurer = measurer or FakeMeasurer()
        monkeypatch.setattr(session, "open_measurer", lambda *_: tune.measurer)
        monkeypatch.setattr(cores.Watch, "others", lambda _: busy)
        options = {"patient": True, "trials": 80, **options}
        return te_select.tune(workload, "x86-64-v4", tuning_logs=tmp_path, **options)

    tune.folder = tmp_path / "x86-64-v4"
    return tune
