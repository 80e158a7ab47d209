"""Libraries that the verbs are tried on, and tuning without measuring."""

from pytest import fixture

import te_select
from te_select.tuning import options, session
from tests.support import masked_rows
from tests.support.tuning import FakeMeasurer


@fixture(scope="session")
def one(tmp_path_factory):
    """A library of one kernel."""
    path = tmp_path_factory.mktemp("one") / "mask.so"
    return te_select.export([masked_rows(4, 5)], path)


@fixture(scope="session")
def two(tmp_path_factory):
    """A library of two kernels."""
    path = tmp_path_factory.mktemp("two") / "lib.so"
    shapes = [(4,), ("batch",)]
    return te_select.export([te_select.Workload(s, s, (), "int16") for s in shapes], path)


@fixture
def fake(monkeypatch):
    """Replace the real measurer by a fake one, and the probes by a fixed roof."""

    def use(*args, **keywords):
        measurer = FakeMeasurer(*args, **keywords)

        def opened(_runner, jobs, _timeout):
            measurer.jobs = jobs
            return measurer

        for module in (session, options):
            monkeypatch.setattr(module, "open_measurer", opened)
        monkeypatch.setattr("te_select.tuning.agenda.roof_of", lambda *_: 1e11)
        monkeypatch.setattr("te_select.tuning.options.measure_profile", lambda: "")
        monkeypatch.setattr("te_select.tuning.options.outlook", lambda *_, **__: "")
        return measurer

    return use
