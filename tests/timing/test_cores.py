"""How many threads a contestant may use."""

from __future__ import annotations

import os

import pytest

from te_select.timing import cores


@pytest.mark.parametrize(
    ("ours", "openmp", "threads"),
    [
        ("3", None, 3),
        ("3", "5", 3),
        (None, "5", 5),
        (None, "5,2", 5),  # for nested loops
        ("", " 7 ", 7),
        ("0", None, None),
        ("x", "-1", None),
        (None, None, None),
    ],
)
def test_users_own_number_comes_before_openmps_and_that_before_all_cpus(
    ours: str | None, openmp: str | None, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("TE_SELECT_NUM_THREADS", ours), ("OMP_NUM_THREADS", openmp)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert cores.threads() == (threads or len(os.sched_getaffinity(0)))


def test_others_are_counted_in_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    monkeypatch.setattr(psutil, "cpu_percent", lambda interval: 25.0)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 8)
    assert cores.busy_cores() == 2.0
