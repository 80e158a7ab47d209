"""Every door into a library selects as NumPy does, or refuses in words of its own."""

from pytest import fixture, mark

from tests.support.oracle import doors_of_cpu, doors_of_cuda
from tests.support.oracle.cases import CASES, WALKS
from tests.support.oracle.comparison import pairs, same


@mark.parametrize("door, case", pairs(doors_of_cpu.DOORS, [*CASES, *WALKS]))
def test_door_selects_as_numpy_or_refuses(oracle_library, door, case):
    same(case, door, oracle_library)


@fixture(scope="module")
def on_cuda(tmp_path_factory):
    return doors_of_cuda.library(tmp_path_factory.mktemp("on_cuda"))


@mark.parametrize("door, case", pairs(doors_of_cuda.DOORS, [*CASES, *WALKS]))
def test_door_of_a_device_selects_as_numpy_or_refuses(on_cuda, door, case):
    with on_cuda.running():
        same(case, door, on_cuda)
