"""The record of a workload, as Python has it and as the logs keep it."""

from te_select.records import log
from te_select.tuning.record import recorded, said
from tests.support.tuning_fakes import SMALL
from tests.support.tuning_records import V4, make

VERSIONS = {"versions": {"tvm": "0.1"}}
FOUND = {"default_seconds": 9e-3, "trials": 7, "failed": 2, "busy_cores": 0.25, "spread": 0.125}


def test_record_that_is_read_is_the_one_that_was_written():
    texts = {"cond": "a mask", "sizes": "n=1:9"}
    entry = make(SMALL, 1e-3, **FOUND, **texts)
    record = recorded(entry, "x86-64-v4")
    assert (record.seconds, dict(record.config)) == (1e-3, dict(entry.knobs))
    assert record.name == "x86-64-v4/w4_1024cte" and record.workload == SMALL
    assert recorded(log.made(SMALL, V4, said(record) | VERSIONS), "x86-64-v4") == record
    assert {name: getattr(record, name) for name in {**FOUND, **texts}} == {**FOUND, **texts}
    assert "unsure" not in said(record)
