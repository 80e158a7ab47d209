"""Calls of CUDA kernels that fail, on a stand-in for the driver."""

import tvm_ffi
from pytest import importorskip, mark, raises, skip

from te_select import ArgumentError, ArtifactError, Workload
from tests.support import python
from tests.support.cuda_standin import (
    SHAPE,
    build,
    data,
    data_on_device,
    empty_on_device,
    fake_driver,
    fake_library,
    fresh_kernel,
    kernel,
    on_device,
    real_driver,
    running,
)

W = Workload(SHAPE, SHAPE, SHAPE)


def test_torch_tensor_of_the_cpu_is_refused_with_what_to_do():
    torch = importorskip("torch")
    with running(W):
        cond, then, else_ = data()
        with raises(ArgumentError, match=r"then is a .* on cpu; .* pass then.cuda\(\)"):
            kernel(W)(on_device(cond), torch.from_numpy(then), on_device(else_))


def test_operands_of_two_devices_are_refused():
    with fake_driver(90, 90) as fake:
        k = kernel(W)
        cond, then, else_ = data()
        mixed = (on_device(cond), on_device(then), on_device(else_, device=1))
        with raises(ArgumentError, match=r"else_ is on CUDA device 1 and out on 0; .* one"):
            k(*mixed)
        with raises(ArgumentError, match="one device"):
            k(*(on_device(array) for array in (cond, then, else_)), out=empty_on_device(W, 1))
        tensors = [tvm_ffi.from_dlpack(each) for each in (*mixed, empty_on_device(W))]
        with raises(ValueError, match="else_ is on CUDA device 1 and out on 0"):
            k.function(*tensors)
        assert fake.fake_launches() == 0


@mark.parametrize("archs", [("sm_90", "sm_100"), ("sm_75", "sm_90")])
def test_device_without_code_is_told_what_is_embedded(archs):
    with fake_driver(90, 80) as fake:
        k = fresh_kernel(W, archs=archs)
        with raises(ArtifactError) as error:
            k(*data_on_device(1))
        held = f"code for {', '.join(archs)} and PTX of {archs[-1]}"
        for text in (held, "device 1 is sm_80", "cuda:sm_80"):
            assert text in str(error.value)
        assert fake.fake_launches() == 0


@mark.parametrize(
    "function, code, text",
    [
        ("cuModuleLoadData", 209, "holds code for sm_80, sm_90"),
        ("cuModuleLoadData", 200, "driver is older than the compiler"),
        ("cuModuleLoadData", 222, "driver is older than the compiler"),
        ("cuModuleLoadData", 2, "cannot be loaded to the device: CUDA error 2"),
        ("cuModuleGetFunction", 500, "does not hold the kernel"),
        ("cuLaunchKernel", 700, "cannot be launched: CUDA error 700, CUDA_ERROR_OF_THE_FAKE"),
        ("cuLaunchKernel", 3, "forked child"),
        ("cuModuleLoadData", 900, "call once before the capture"),
        ("cuDeviceGetCount", 3, "devices cannot be counted: .*forked child"),
        ("cuCtxGetCurrent", 4, "cannot be launched: CUDA error 4"),
        ("cuCtxPushCurrent_v2", 4, "device cannot be used: CUDA error 4"),
        ("cuDevicePrimaryCtxRetain", 2, "device cannot be used"),
        ("cuDeviceGetAttribute", 1, "architecture of the device is not known"),
    ],
)
def test_failure_of_the_driver_is_named_and_passes(function, code, text):
    with fake_driver(90) as fake:
        k = fresh_kernel(W)
        inputs = data_on_device()
        out = empty_on_device(W)
        fake.fake_fail(function.encode(), code)
        with raises(ArtifactError, match=text):
            k(*inputs, out=out)
        assert fake.fake_depth() == 0
        fake.fake_fail(b"", 0)
        assert k(*inputs, out=out) is out


def test_output_that_cannot_be_allocated_is_an_argument_error():
    with fake_driver(90) as fake:
        k = kernel(W)
        inputs = data_on_device()
        fake.fake_fail(b"cuMemAlloc_v2", 2)
        with raises(ArgumentError, match="60 bytes on CUDA device 0, cannot be allocated"):
            k(*inputs)


@mark.parametrize("device, said", [(1, "there are 1"), (64, "at most 64 devices are supported")])
def test_device_that_is_not_there_is_an_error(device, said):
    with fake_driver(90) as fake:
        k = fresh_kernel(W)
        arrays = data_on_device()
        for array in arrays:
            array.memory.device = device
        out = empty_on_device(W)
        out.memory.device = device
        with raises(ArgumentError, match=f"on CUDA device {device}; {said}"):
            k(*arrays, out=out)
        for array in (*arrays, out):
            array.memory.device = 0
        assert fake.fake_launches() == 0


def test_call_without_a_driver_says_so(tmp_path):
    if real_driver() and not fake_library.cache_info().currsize:
        skip("a real NVIDIA driver is installed")
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
    called, unallocated = python(script, build([W], tmp_path / "mask.so")).splitlines()
    assert "there is no NVIDIA driver (libcuda.so.1" in called
    assert "cannot be allocated: there is no NVIDIA driver" in unallocated
