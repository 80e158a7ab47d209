"""Calls of CUDA kernels that fail, on a stand-in for the driver."""

import pytest
import tvm_ffi

from te_select.errors import ArgumentError, ArtifactError
from te_select.operator.workload import Workload
from tests.support import cuda_standin
from tests.support.cuda_standin import (
    SHAPE,
    data,
    data_on_device,
    empty_on_device,
    fake_driver,
    on_device,
    running,
)
from tests.support.programs import python

W = Workload(SHAPE, SHAPE, SHAPE)


def test_torch_tensor_of_the_cpu_is_refused_with_what_to_do():
    torch = pytest.importorskip("torch")
    with running(W):
        cond, then, else_ = data()
        with pytest.raises(ArgumentError, match=r"then is a .* on cpu; .* pass then.cuda\(\)"):
            cuda_standin.kernel(W)(on_device(cond), torch.from_numpy(then), on_device(else_))


def test_operands_of_two_devices_are_refused():
    with fake_driver(90, 90) as fake:
        k = cuda_standin.kernel(W)
        cond, then, else_ = data()
        mixed = (on_device(cond), on_device(then), on_device(else_, device=1))
        with pytest.raises(ArgumentError, match=r"else_ is on CUDA device 1 and out on 0; .* one"):
            k(*mixed)
        with pytest.raises(ArgumentError, match="one device"):
            k(*(on_device(array) for array in (cond, then, else_)), out=empty_on_device(W, 1))
        tensors = [tvm_ffi.from_dlpack(each) for each in (*mixed, empty_on_device(W))]
        with pytest.raises(ValueError, match="else_ is on CUDA device 1 and out on 0"):
            k.function(*tensors)
        assert fake.fake_launches() == 0


@pytest.mark.parametrize("archs", [("sm_90", "sm_100"), ("sm_75", "sm_90")])
def test_device_without_code_is_told_what_is_embedded(archs):
    with fake_driver(80) as fake:
        k = cuda_standin.fresh_kernel(W, archs=archs)
        with pytest.raises(ArtifactError) as error:
            k(*data_on_device())
        held = f"code for {', '.join(archs)} and PTX of {archs[-1]}"
        for text in (held, "device 0 is sm_80", "cuda:sm_80"):
            assert text in str(error.value)
        assert fake.fake_launches() == 0


@pytest.mark.parametrize(
    "function, code, text",
    [
        ("cuModuleLoadData", 209, "holds code for sm_80, sm_90"),
        ("cuModuleLoadData", 222, "driver is older than the compiler"),
        ("cuModuleLoadData", 2, "cannot be loaded to the device: CUDA error 2"),
        ("cuModuleGetFunction", 500, "does not hold the kernel"),
        ("cuLaunchKernel", 700, "cannot be launched: CUDA error 700, CUDA_ERROR_OF_THE_FAKE"),
        ("cuLaunchKernel", 3, "forked child"),
        ("cuModuleLoadData", 900, "call once before the capture"),
        ("cuDevicePrimaryCtxRetain", 2, "device cannot be used"),
        ("cuDeviceGetAttribute", 1, "architecture of the device is not known"),
    ],
)
def test_failure_of_the_driver_is_named_and_passes(function, code, text):
    with fake_driver(90) as fake:
        k = cuda_standin.fresh_kernel(W)
        inputs = data_on_device()
        out = empty_on_device(W)
        fake.fake_fail(function.encode(), code)
        with pytest.raises(ArtifactError, match=text):
            k(*inputs, out=out)
        assert fake.fake_depth() == 0
        fake.fake_fail(b"", 0)
        assert k(*inputs, out=out) is out


def test_output_that_cannot_be_allocated_is_an_argument_error():
    with fake_driver(90) as fake:
        k = cuda_standin.kernel(W)
        inputs = data_on_device()
        fake.fake_fail(b"cuMemAlloc_v2", 2)
        with pytest.raises(ArgumentError, match="60 bytes on CUDA device 0, cannot be allocated"):
            k(*inputs)


@pytest.mark.parametrize(
    "device, said", [(5, "there are 1"), (64, "at most 64 devices are supported")]
)
def test_device_that_is_not_there_is_an_error(device, said):
    with fake_driver(90) as fake:
        k = cuda_standin.fresh_kernel(W)
        arrays = data_on_device()
        for array in arrays:
            array.memory.device = device
        out = empty_on_device(W)
        out.memory.device = device
        with pytest.raises(ArgumentError, match=f"on CUDA device {device}; {said}"):
            k(*arrays, out=out)
        for array in (*arrays, out):
            array.memory.device = 0
        assert fake.fake_launches() == 0


def test_call_without_a_driver_says_so(tmp_path):
    if cuda_standin.real_driver() and not cuda_standin.fake_library.cache_info().currsize:
        pytest.skip("a real NVIDIA driver is installed")
    script = """
        import sys
        import numpy as np, te_select
        from tests.support.hand_made import CUDA, HandMade
        kernel = te_select.load(sys.argv[1])
        *inputs, out = [HandMade(np.ones((3, 5), t), device=CUDA) for t in ("?", "f4", "f4", "f4")]
        for given in ({"out": out}, {}):
            try:
                kernel(*inputs, **given)
            except te_select.SelectError as error:
                print(error)
    """
    called, unallocated = python(script, cuda_standin.build([W], tmp_path / "mask.so")).splitlines()
    assert "there is no NVIDIA driver (libcuda.so.1" in called
    assert "cannot be allocated: there is no NVIDIA driver" in unallocated
