"""The plain C functions of kernels for CUDA, on a stand-in for the driver."""

import ctypes

import numpy as np
import pytest
import tvm_ffi

from te_select import Workload
from tests.support.cuda_standin import build, fake_driver, fake_library, on_device, read, running
from tests.support.oracle.doors_of_cpu import call_plain

OK, INVALID, CANNOT_RUN = 0, 1, 2
W = Workload(("n", 4), ("n", 4), ())


@pytest.fixture
def library(tmp_path):
    """A library that no device has seen."""
    return ctypes.CDLL(str(build([W], tmp_path / "lib.so", plain=True)))


def call(library, *operands, sizes=(3,), stream=0):
    return call_plain(library, W, *operands, sizes=sizes, more=[ctypes.c_void_p(stream)])


def arrays():
    then = np.arange(12, dtype="f4").reshape(3, 4)
    return then % 2 == 0, then, np.array(-1, "f4"), np.zeros((3, 4), "f4")


def test_kernel_runs_on_the_stream_and_the_device_of_the_memory(library):
    with running(W) as fake:
        fake.fake_device(90)
        cond, then, else_, out = (on_device(array, device=1) for array in arrays())
        assert call(library, cond, then, else_, out, stream=0x5000)[0] == OK
        launch = fake.fake_last().contents
        assert (launch.device, launch.stream) == (1, 0x5000)
        expected = np.where(*arrays()[:3])
        assert read(out).tobytes() == expected.tobytes()
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 1), 0x5000):
            assert call(library, cond, then, else_, out)[0] == OK
        assert fake.fake_last().contents.stream is None


def test_no_element_needs_no_driver(library):
    with fake_driver():
        assert call(library, None, None, None, None, sizes=(0,))[0] == INVALID  # else_
    with fake_driver(90):
        else_ = np.array(-1, "f4")
        assert call(library, None, None, else_, None, sizes=(0,))[0] == OK


def test_machine_without_a_device_is_a_status(library):
    fake_library()
    with fake_driver():
        status, message = call(library, *arrays())
    assert status == CANNOT_RUN
    assert message.startswith("the driver does not start: CUDA error 100, CUDA_ERROR_NO_DEVICE")


@pytest.mark.parametrize("failing", ["cuLaunchKernel", "cuModuleLoadData", "cuPointerGetAttribute"])
def test_failure_of_the_driver_is_a_status(library, failing):
    with running(W) as fake:
        operands = [on_device(array) for array in arrays()]
        fake.fake_fail(failing.encode(), 700)
        status, message = call(library, *operands)
    assert status == CANNOT_RUN and "CUDA error 700" in message
