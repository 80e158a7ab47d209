"""Which runs may be stored past the cache, read from the code that LLVM makes of whole kernels."""

import dataclasses

import pytest

from te_select import Workload
from te_select.backends.targets import resolve
from te_select.compiler.sources import source
from te_select.operator.access import access_pattern
from te_select.schedules.cpu.defaults import default_config

TARGET = "x86-64-v3"


@pytest.mark.parametrize(
    ("dtype", "n", "may_be"),
    [
        ("uint8", 1023, False),
        ("uint8", 1024, True),
        ("float32", 255, False),
        ("float32", 256, True),
        ("float64", 127, False),
        ("float64", 128, True),
    ],
)
def test_runs_of_1_kb_may_be_stored_past_the_cache(dtype: str, n: int, may_be: bool) -> None:
    """LLVM leaves out the stores of a way that a run of known length never takes."""
    workload = Workload((n,), (n,), (n,), dtype)
    default = default_config(access_pattern(workload), resolve(TARGET).tvm)
    config = dataclasses.asdict(dataclasses.replace(default, stream_from=1))
    assert ("!nontemporal" in source(workload, TARGET, config, "llvm")) == may_be
