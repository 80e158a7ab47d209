"""Every door into a library selects as NumPy does, or refuses in words of its own."""

import ctypes

import pytest

import te_select
from tests.support import cuda_standin, oracle


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return oracle.library(tmp_path_factory.mktemp("doors"))


@pytest.mark.parametrize(
    ("door", "case"), oracle.pairs(oracle.DOORS, [*oracle.CASES, *oracle.WALKS])
)
def test_door_selects_as_numpy_or_refuses(library, door, case):
    oracle.same(case, door, library)


@pytest.fixture(scope="module")
def on_cuda(tmp_path_factory):
    path = tmp_path_factory.mktemp("on_cuda") / "oracle.so"
    return te_select.load(cuda_standin.build(oracle.WORKLOADS, path, plain=True))


@pytest.mark.parametrize(("door", "case"), oracle.pairs(oracle.DOORS_OF_CUDA, oracle.CASES))
def test_door_of_a_device_selects_as_numpy_or_refuses(on_cuda, door, case):
    with cuda_standin.running(*oracle.WORKLOADS) as fake:
        fake.fake_memory(0, ctypes.c_uint64(1), ctypes.c_uint64(2**63))
        oracle.same(case, door, on_cuda)
