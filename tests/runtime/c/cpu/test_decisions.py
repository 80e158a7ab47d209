"""What a kernel tells the host half, by its access pattern and its config."""

from pytest import mark

from te_select import Workload
from te_select.operator.access import access_pattern
from te_select.runtime.call.cpu.decisions import Decisions
from tests.support import masked_rows
from tests.support.runtime_standin import kernel

N = 1 << 20


def decisions(*shapes, **config):
    return Decisions.of(access_pattern(Workload(*shapes, "float32", "multidirectional")), config)


@mark.parametrize(
    "shapes, once",
    [
        ([(N,), (N,), (N,)], True),
        ([(), (), ()], True),
        ([(9, N), (9, 1), (1, N)], True),
        ([(1, N), (9, N), ()], False),
        ([(9, 1), (9, N), (1, N)], False),
        ([(), (N,), (N,)], False),
    ],
)
def test_cond_is_read_once_where_it_moves_along_every_loop(shapes, once):
    assert decisions(*shapes).reads_cond_once == once


def test_knobs_are_those_of_the_config():
    knobs = {"bytes_per_thread": 9, "stream_from": -1, "skip": 1, "backwards": -1}
    made = decisions((N,), (N,), (N,), unroll=4, **knobs)
    assert made.numbers == (9, -1, 1, -1, 1)
    assert decisions((), (), ()).numbers == (0, 0, 0, 0, 1)


@mark.parametrize(
    "found, told", [(4, (1, False, False)), (14, (3, True, False)), (9, (2, False, True))]
)
def test_plan_asks_with_bytes_and_reads_the_answer(monkeypatch, found, told):
    made = kernel(masked_rows(4, 8, "float64"))
    asked = []
    answer = lambda name: lambda *given: asked.append((name, *given)) or found  # noqa: E731
    monkeypatch.setattr(made, "_find", answer)
    assert tuple(made.plan().values()) == told
    numbers = Decisions.of(access_pattern(made.workload), made.config).numbers
    assert asked == [("te_select_plan", 4, 32 * 8, 8, 32 * 8, 32, *numbers)]
    for shape in (("n",), (0,)):
        assert kernel(Workload(shape, shape, shape)).plan() == {}
