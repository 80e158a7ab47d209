"""The probes of the roof."""

from __future__ import annotations

import numpy as np
import pytest

from te_select.timing import roof
from te_select.timing.operands import LINE


@pytest.mark.parametrize("name", ["copy", "select"])
@pytest.mark.parametrize("stream", [0, 1])
def test_a_probe_does_the_work_it_is_timed_for(name: str, stream: int) -> None:
    elements = 5 * LINE
    memory = roof.probe_memory(name, elements)
    for k, array in enumerate(memory[-3:]):
        array[...] = np.arange(elements) + 1000 * k
    roof.runner(name, [memory], elements, stream, 2)(1)
    want = np.where(memory[0] != 0, *memory[1:3]) if name == "select" else memory[0]
    np.testing.assert_array_equal(memory[-1], want)


def test_probes_move_about_as_many_bytes_as_the_workload() -> None:
    for probe in roof.probes(1_000_000, 3).values():
        assert probe.bytes == pytest.approx(1_000_000, rel=0.01)
        probe.call()
