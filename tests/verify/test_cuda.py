"""Kernels for CUDA devices that are checked with NumPy arrays, on a stand-in for the driver."""

import numpy as np
from pytest import fixture, raises

from te_select import ArtifactError, SelectError
from te_select.verify.cuda import OnDevice
from te_select.verify.verify import verify_kernel
from tests.support import cuda_standin, flat_and_scalar

WORKLOAD = flat_and_scalar(5)


@fixture(autouse=True)
def no_failure_before(monkeypatch):
    monkeypatch.setattr("te_select.verify.cuda._failures", [])


def test_kernel_that_fails_on_the_device_fails_its_checks():
    with cuda_standin.running(WORKLOAD) as fake:
        kernel = OnDevice(cuda_standin.kernel(WORKLOAD))
        assert all(result.passed for result in verify_kernel(kernel))
        fake.fake_fail(b"cuMemcpyDtoH_v2", 700)
        results = verify_kernel(kernel)
        assert results and not any(result.passed for result in results)
        assert all(f"{WORKLOAD.name} failed on the device" in r.message for r in results)
        fake.fake_fail(b"cuMemAlloc_v2", 700)  # the driver refuses all that follows
        other = OnDevice(cuda_standin.kernel(flat_and_scalar(3)))
        with raises(SelectError, match=f"{WORKLOAD.name} failed on the device"):
            other(None, None, None, out=None)


def test_device_without_memory_cannot_run_a_kernel():
    with cuda_standin.running(WORKLOAD) as fake:
        fake.fake_fail(b"cuMemAlloc_v2", 2)
        with raises(ArtifactError, match="cannot be run here"):
            verify_kernel(OnDevice(cuda_standin.kernel(WORKLOAD)))


def test_operands_of_rank_0_are_checked_by_value_and_by_address():
    ways = set()
    with cuda_standin.running(WORKLOAD) as fake:
        kernel = OnDevice(cuda_standin.kernel(WORKLOAD))
        memory = np.zeros(9, np.uint8)
        then = np.ones(6, np.float32)[1:]
        for offset in (0, 1):
            number = memory[offset : offset + 4].view(np.float32).reshape(())
            kernel(np.ones(5, np.bool_), then, number, out=then)
            pointers = fake.fake_last().contents.pointers
            assert pointers[1] % 256 == then.ctypes.data % 256
            ways.add(pointers[2] is None)
    assert ways == {False, True}
