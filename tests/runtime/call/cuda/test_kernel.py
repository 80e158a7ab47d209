"""Calls of CUDA kernels on a stand-in for the driver: the launch and the result."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tvm_ffi
from pytest import importorskip, mark, raises
from tvm_ffi import from_dlpack

from te_select import ArgumentError, DTypeError, Workload, load
from te_select.operator.dtypes import ELEMENT_TYPES
from tests.support import alike
from tests.support.cuda_standin import (
    SHAPE,
    THREADS,
    build,
    data,
    data_on_device,
    empty_on_device,
    fake_driver,
    fresh_kernel,
    kernel,
    on_device,
    read,
    running,
)
from tests.support.operands import bits_of, expected

W = alike(*SHAPE)


def selected(*arrays):
    """The bytes of NumPy's result."""
    return bits_of(expected(*arrays))


def launched(fake):
    return fake.fake_last().contents


def test_launch_has_the_calls_grid_pointers_and_stream():
    with running(W) as fake:
        k = fresh_kernel(W, blocks="3")
        inputs = data_on_device()
        out = empty_on_device(W)
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), 0x5000):
            k(*inputs, out=out)
        last = launched(fake)
        assert last.symbol == b"te_select_kernel_0"
        assert (last.blocks, last.threads, last.stream) == (3, THREADS, 0x5000)
        assert list(last.pointers) == [array.memory.address for array in (*inputs, out)]
        k(*inputs, out=out)
        assert launched(fake).stream is None


def test_tensors_of_tvm_ffi_are_taken_as_they_are():
    with running(W):
        tensors = [from_dlpack(on_device(array)) for array in data()]
        out = empty_on_device(W)
        target = from_dlpack(out)
        assert kernel(W)(*tensors, out=target) is target
        assert read(out).tobytes() == selected(*data())


def test_output_is_allocated_on_the_device_of_the_inputs():
    with fake_driver(90, 90):
        k = fresh_kernel(W)
        out = k(*data_on_device(1))
        assert isinstance(out, tvm_ffi.Tensor)
        assert tuple(out.__dlpack_device__()) == (2, 1)


def test_number_on_the_device_is_read_where_it_begins():
    workload = Workload(SHAPE, SHAPE, (), "complex128")
    cond, then, _ = data("complex128")
    number = np.array(1 - 2j)
    with running(workload):
        there = on_device(np.zeros(16, number.dtype))
        there.shape, there.offset = (), 8  # enough for elements of 16 bytes, which are two words
        there.write(number)
        out = empty_on_device(workload)
        kernel(workload)(on_device(cond), on_device(then), there, out=out)
        assert read(out).tobytes() == selected(cond, then, number)


def test_out_says_the_device_of_scalars():
    workload = alike()
    with running(workload):
        k = kernel(workload)
        with raises(ArgumentError, match=r"no operand is on a CUDA device.*pass out"):
            k(True, 1.0, 2.0)


@mark.parametrize("dtype", sorted(set(ELEMENT_TYPES) - {"complex64", "complex128"}))
def test_scalars_beside_torch_tensors_are_kept_as_tensors(dtype):
    torch = importorskip("torch")
    workload = alike(dtype=dtype)
    unsigned = dtype == "bool" or dtype.startswith("uint")
    value = True if dtype == "bool" else 3 if unsigned else -3
    with running(workload):
        k = kernel(workload)
        inputs = k._torch_inputs(True, value, value)
        assert all(type(each) is torch.Tensor and each.dim() == 0 for each in inputs)
        assert k._torch_inputs(True, value, value)[1] is inputs[1]
        out = empty_on_device(workload)
        k.function(*inputs, from_dlpack(out))
        assert read(out).tobytes() == np.array(value, read(out).dtype).tobytes()


def test_kept_scalars_are_told_apart_by_bits_and_do_not_pile_up():
    importorskip("torch")
    k = fresh_kernel(alike())
    signs = [k._torch_inputs(True, zero, 1.0)[1].signbit().item() for zero in (0.0, -0.0)]
    assert signs == [False, True]
    for value in range(1000):
        k._torch_inputs(True, float(value), 1.0)
    assert len(k._scalars) <= 64
    with raises(DTypeError):
        k._torch_inputs(1, 1.0, 1.0)


def test_each_device_loads_its_code_once_also_from_many_threads():
    with fake_driver(80, 90) as fake:
        k = fresh_kernel(W)
        places = [data_on_device(d) for d in (0, 1)]
        outs = [empty_on_device(W, d) for d in (0, 1)]

        def calls(device):
            for _ in range(50):
                k(*places[device], out=outs[device])

        with ThreadPoolExecutor(8) as callers:
            list(callers.map(calls, [0, 1] * 4))
        assert fake.fake_launches() == 400
        assert fake.fake_modules() == 2
        assert fake.fake_depth() == 0


def test_kernels_of_a_library_share_its_code(tmp_path):
    other = Workload(SHAPE, SHAPE, ())
    library = load(build([W, other], tmp_path / "two.so"))
    with fake_driver(90) as fake:
        cond, then, else_ = data_on_device()
        library[W.name](cond, then, else_)
        library[other.name](cond, then, 1.0)
        assert (fake.fake_launches(), fake.fake_modules()) == (2, 1)


@mark.parametrize(
    "device, archs, image",
    [
        (86, ("sm_80", "sm_89"), b"cubin sm_80"),
        (89, ("sm_80", "sm_86", "sm_90"), b"cubin sm_86"),
        (90, ("sm_80", "sm_90"), b"cubin sm_90"),
        (100, ("sm_80", "sm_90"), b"ptx sm_90"),
        (121, ("sm_90", "sm_120"), b"cubin sm_120"),
    ],
)
def test_code_is_chosen_by_the_architecture_of_the_device(device, archs, image):
    with fake_driver(device) as fake:
        fresh_kernel(W, archs=archs)(*data_on_device())
        assert fake.fake_image() == image


def test_nothing_is_launched_for_an_empty_output_or_grid():
    empty = Workload((0, 5), (0, 5), (5,))
    with fake_driver(90) as fake:
        k = fresh_kernel(empty)
        k(*(on_device(np.zeros(s, t)) for s, t in (((0, 5), "?"), ((0, 5), "f4"), (5, "f4"))))
        assert fake.fake_launches() == fake.fake_modules() == 0
        fresh_kernel(W, blocks="0")(*data_on_device())
        assert fake.fake_launches() == 0


def test_callers_context_is_left_as_it_was():
    with fake_driver(90, 90) as fake:
        import ctypes

        k = fresh_kernel(W)
        inputs = data_on_device(1)
        out = empty_on_device(W, 1)
        fake.cuCtxPushCurrent_v2(ctypes.c_void_p(0x1000))
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 1), 0x5000):
            k(*inputs, out=out)
        assert (launched(fake).device, launched(fake).stream) == (1, 0x5000)
        current = ctypes.c_void_p()
        fake.cuCtxGetCurrent(ctypes.byref(current))
        assert (current.value, fake.fake_depth()) == (0x1000, 1)


def test_memory_of_outputs_is_freed():
    from te_select.runtime.call.cuda import device_array

    with running(W):
        k = kernel(W)
        inputs = data_on_device()
        before = len(device_array._exported)
        for _ in range(5):
            k(*inputs)
        assert len(device_array._exported) == before
        inputs[0].__dlpack__()
        assert len(device_array._exported) == before
