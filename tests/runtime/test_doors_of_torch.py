"""Every door for tensors of torch selects as NumPy or torch does, or refuses."""

from pytest import fixture, importorskip, mark

from tests.support.oracle.cases import CASES, WALKS
from tests.support.oracle.comparison import pairs, same

importorskip("torch")

from tests.support.oracle import doors_of_torch as doors


@mark.parametrize("door, case", pairs({"kernel": doors.KERNEL}, [*CASES, *WALKS]))
def test_kernel_selects_as_numpy_or_refuses(oracle_library, door, case):
    same(case, door, oracle_library)


@fixture
def every_warning():
    """Let torch warn each time, not once."""
    doors.torch.set_warn_always(True)
    yield
    doors.torch.set_warn_always(False)


@mark.parametrize("door, case", pairs(doors.DOORS_OF_WHERE, [*CASES, *WALKS], in_turn=True))
def test_where_of_tensors_does_what_torch_does(family, every_warning, door, case):
    same(case, door)
