"""Tuning with made-up times."""

import warnings

import pytest

import te_select
from tests.support.tuning import SMALL, FakeMeasurer


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Tune beside programs that use so many cores; returns the record, and keeps the measurer."""

    def tune(workload=SMALL, measurer=None, busy=0.0, **options):
        tune.measurer = measurer or FakeMeasurer()
        monkeypatch.setattr("te_select.tuning.session.open_measurer", lambda *_: tune.measurer)
        monkeypatch.setattr("te_select.timing.cores.Watch.others", lambda _: busy)
        options = {"patient": True, "trials": 80, **options}
        with warnings.catch_warnings(record=True) as caught:
            record = te_select.tune(workload, "x86-64-v4", tuning_logs=tmp_path, **options)
        assert any("is unsure, and" in str(each.message) for each in caught) == bool(record.unsure)
        return record

    tune.folder = tmp_path / "x86-64-v4"
    return tune
