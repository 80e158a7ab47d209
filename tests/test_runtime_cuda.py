"""Calls of CUDA kernels on a stand-in for the driver: what is launched, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import tvm_ffi

import te_select
from te_select.dtypes import ELEMENT_TYPES
from te_select.errors import ArgumentError, ArtifactError, DTypeError
from te_select.runtime.device_array import DeviceArray
from te_select.runtime.operands import numpy_dtype
from te_select.workload import Workload
from tests import cuda_standin, runtime_standin
from tests.cuda_standin import Strided, empty_on_device, fake_driver, on_device, read, running

SHAPE = (3, 5)
W = Workload(SHAPE, SHAPE, SHAPE)


def data(dtype="float32", shape=SHAPE):
    rng = np.random.default_rng(3)
    dtype = numpy_dtype(ELEMENT_TYPES[dtype])
    sides = [rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8) for _ in range(2)]
    if dtype == np.bool_:
        sides = [side & 1 for side in sides]
    cond = rng.integers(0, 2, shape).astype(bool)
    return cond, *(side.view(dtype).reshape(shape) for side in sides)


def expected(cond, then, else_):
    words = f"V{then.dtype.itemsize}"
    shape = np.broadcast_shapes(cond.shape, then.shape, else_.shape)
    out = np.broadcast_to(else_.view(words), shape).copy()
    np.copyto(out, np.broadcast_to(then.view(words), shape), where=cond)
    return out.tobytes()


def launched(fake):
    return fake.fake_last().contents


@pytest.mark.parametrize("dtype", sorted(ELEMENT_TYPES))
def test_every_element_type_is_handed_to_the_kernel_and_back(dtype):
    workload = Workload(SHAPE, SHAPE, SHAPE, dtype)
    arrays = data(dtype)
    with running(workload):
        k = cuda_standin.kernel(workload)
        inputs = [on_device(arrays[0], "bool"), *(on_device(a, dtype) for a in arrays[1:])]
        out = empty_on_device(workload)
        assert k(*inputs, out=out) is out
        assert read(out).tobytes() == expected(*arrays)


def test_launch_has_the_grid_the_pointers_and_the_stream_of_the_call():
    with running(W) as fake:
        k = cuda_standin.fresh_kernel(W, blocks="3")
        inputs = [on_device(array) for array in data()]
        out = empty_on_device(W)
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), 0x5000):
            k(*inputs, out=out)
        last = launched(fake)
        assert last.symbol == b"te_select_kernel_0"
        assert (last.blocks, last.threads, last.stream) == (3, cuda_standin.THREADS, 0x5000)
        assert list(last.pointers) == [array.memory.address for array in (*inputs, out)]
        k(*inputs, out=out)
        assert launched(fake).stream is None


def test_named_dims_reach_the_grid_and_the_kernel():
    workload = Workload(("n", 1), ("n", "m"), ("m",))
    cond, then, else_ = (
        np.arange(6)[:, None] % 2 == 0,
        np.arange(24, dtype="f4").reshape(6, 4),
        -np.ones(4, "f4"),
    )
    with running(workload) as fake:
        k = cuda_standin.kernel(workload, blocks="sizes[0] * 100 + sizes[1]")
        out = k(*(on_device(array) for array in (cond, then, else_)))
        order = dict(zip(workload.dim_names, (0, 1), strict=True))
        sizes = {"n": 6, "m": 4}
        grid = [sizes[name] for name in sorted(order, key=order.get)]
        assert launched(fake).blocks == grid[0] * 100 + grid[1]
        result = DeviceArray.empty(workload.element, (6, 4))
        k(*(on_device(array) for array in (cond, then, else_)), out=result)
        assert read(result).tobytes() == np.where(cond, then, else_).tobytes()
        assert tuple(out.shape) == (6, 4)


def test_tensors_that_hand_over_versioned_dlpack_are_taken():
    cond, then, else_ = data()
    with running(W):
        k = cuda_standin.kernel(W)
        tensors = [tvm_ffi.from_dlpack(on_device(array)) for array in (cond, then, else_)]
        out = empty_on_device(W)
        k(*tensors, out=out)
        assert read(out).tobytes() == expected(cond, then, else_)
        out = empty_on_device(W)
        target = tvm_ffi.from_dlpack(out)
        assert k(*tensors, out=target) is target
        assert read(out).tobytes() == expected(cond, then, else_)
        assert isinstance(k(*tensors), tvm_ffi.Tensor)


def test_output_is_allocated_on_the_device_of_the_inputs():
    with fake_driver(90, 90):
        k = cuda_standin.fresh_kernel(W)
        out = k(*(on_device(array, device=1) for array in data()))
        assert isinstance(out, tvm_ffi.Tensor)
        assert tuple(out.__dlpack_device__()) == (2, 1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex128"])
def test_scalars_of_rank_0_go_with_the_launch(dtype):
    workload = Workload(SHAPE, SHAPE, (), dtype)
    cond, then, _ = data(dtype)
    value = {"bool": True, "complex128": 1 - 2j}.get(dtype, 7)
    with running(workload) as fake:
        k = cuda_standin.kernel(workload)
        inputs = (on_device(cond), on_device(then, dtype))
        want = expected(cond, then, np.array(value, then.dtype))
        for scalar in (value, np.array(value, then.dtype), np.array(value, then.dtype)[()]):
            out = empty_on_device(workload)
            k(*inputs, scalar, out=out)
            assert launched(fake).pointers[2] is None
            assert read(out).tobytes() == want
        there = on_device(np.array(value, then.dtype), dtype)
        k(*inputs, there, out=out)
        assert launched(fake).pointers[2] == there.memory.address
        assert read(out).tobytes() == want


def test_all_operands_may_be_scalars_where_out_says_the_device():
    workload = Workload((), (), ())
    with running(workload):
        k = cuda_standin.kernel(workload)
        out = empty_on_device(workload)
        k(True, -0.0, 2.0, out=out)
        assert read(out).tobytes() == np.float32(-0.0).tobytes()
        with pytest.raises(ArgumentError, match=r"no operand is on a CUDA device.*pass out"):
            k(True, 1.0, 2.0)


def test_in_place_is_taken_and_partial_overlap_refused():
    with running(W):
        k = cuda_standin.kernel(W)
        cond, then, else_ = data()
        inputs = [on_device(array) for array in (cond, then, else_)]
        k(*inputs, out=inputs[1])
        assert read(inputs[1]).tobytes() == expected(cond, then, else_)
        memory = on_device(np.zeros(20, "f4"))
        shifted = DeviceArray(memory.memory, W.element, SHAPE, 4)
        inside = DeviceArray(memory.memory, W.element, SHAPE)
        before = read(memory).tobytes()
        with pytest.raises(ArgumentError, match="overlaps an input in part"):
            k(inputs[0], inside, inputs[2], out=shifted)
        assert read(memory).tobytes() == before


def test_strided_tensors_of_unknown_libraries_are_refused():
    with running(W):
        k = cuda_standin.kernel(W)
        inputs = [on_device(array) for array in data()]
        transposed = Strided(inputs[1], (1, 3), SHAPE)
        with pytest.raises(ArgumentError, match=r"then has strides.*compact row-major"):
            k(inputs[0], transposed, inputs[2])
        with pytest.raises(ArgumentError, match=r"out has strides.*compact"):
            k(*inputs, out=transposed)
        with pytest.raises(ArgumentError, match="elements share memory"):
            k(*inputs, out=Strided(inputs[1], (0, 1), SHAPE))


def test_misaligned_elements_are_refused_before_the_launch():
    with running(W) as fake:
        k = cuda_standin.kernel(W)
        inputs = [on_device(array) for array in data()]
        buffer = on_device(np.zeros(100, "u1"))
        with pytest.raises(ArgumentError, match=r"then begins at .*divisible by 4"):
            k(inputs[0], DeviceArray(buffer.memory, W.element, SHAPE, 2), inputs[2])
        assert fake.fake_launches() == 0


def test_sixteen_byte_elements_need_eight_byte_alignment_only():
    workload = Workload((3,), (3,), (3,), "complex128")
    cond, then, else_ = data("complex128", (3,))
    with running(workload):
        buffer = on_device(np.zeros(100, "u1"))
        moved = DeviceArray(buffer.memory, workload.element, (3,), 8)
        moved.write(then)
        out = empty_on_device(workload)
        cuda_standin.kernel(workload)(
            on_device(cond), moved, on_device(else_, "complex128"), out=out
        )
        assert read(out).tobytes() == expected(cond, then, else_)


def test_cpu_memory_is_refused_with_what_to_do():
    torch = pytest.importorskip("torch")
    with running(W):
        k = cuda_standin.kernel(W)
        cond, then, else_ = data()
        inputs = [on_device(array) for array in (cond, then, else_)]
        with pytest.raises(ArgumentError, match=r"then is in memory of the CPU; expected.*CUDA"):
            k(inputs[0], then, inputs[2])
        with pytest.raises(ArgumentError, match=r"then is a .* on cpu; .* pass then.cuda\(\)"):
            k(inputs[0], torch.from_numpy(then), inputs[2])
        with pytest.raises(ArgumentError, match="out is in memory of the CPU"):
            k(*inputs, out=np.zeros(SHAPE, "f4"))
        with pytest.raises(ArgumentError, match="then is a list"):
            k(inputs[0], [1], inputs[2])
        with pytest.raises(ArgumentError, match="out is the scalar 3"):
            k(*inputs, out=3)


def test_cuda_memory_is_refused_by_a_kernel_of_the_cpu():
    with running(W):
        inputs = [on_device(array) for array in data()]
        with pytest.raises(ArgumentError, match="on device 0 of CUDA; expected memory of the CPU"):
            runtime_standin.kernel(W)(*inputs)


def test_two_devices_are_refused():
    with fake_driver(90, 90) as fake:
        k = cuda_standin.kernel(W)
        cond, then, else_ = data()
        mixed = (on_device(cond), on_device(then), on_device(else_, device=1))
        with pytest.raises(ArgumentError, match=r"else_ is on CUDA device 1, and out on 0; .* one"):
            k(*mixed)
        with pytest.raises(ArgumentError, match="one device"):
            k(*(on_device(array) for array in (cond, then, else_)), out=empty_on_device(W, 1))
        tensors = [tvm_ffi.from_dlpack(each) for each in (*mixed, empty_on_device(W))]
        with pytest.raises(ValueError, match="else_ is on CUDA device 1 and out on 0"):
            k.function(*tensors)
        assert fake.fake_launches() == 0


def test_other_shapes_and_element_types_are_refused():
    with running(W):
        k = cuda_standin.kernel(W)
        inputs = [on_device(array) for array in data()]
        with pytest.raises(DTypeError, match="cond != 0"):
            k(inputs[1], inputs[1], inputs[2])
        with pytest.raises(ArgumentError, match=r"then has shape \[2\]"):
            k(inputs[0], on_device(np.zeros(2, "f4")), inputs[2])
        with pytest.raises(DTypeError, match="else_ has element type float64"):
            k(inputs[0], inputs[1], on_device(np.zeros(SHAPE)))


def test_each_device_loads_its_code_once_also_from_many_threads():
    with fake_driver(80, 90) as fake:
        k = cuda_standin.fresh_kernel(W)
        places = [[on_device(a, device=d) for a in data()] for d in (0, 1)]
        outs = [empty_on_device(W, d) for d in (0, 1)]
        failed = []

        def calls(device):
            try:
                for _ in range(50):
                    k(*places[device], out=outs[device])
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=calls, args=(i % 2,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert fake.fake_launches() == 400
        assert fake.fake_modules() == 2
        assert fake.fake_depth() == 0


@pytest.mark.parametrize(
    ("device", "archs", "image"),
    [
        (80, ("sm_80", "sm_90"), b"cubin sm_80"),
        (86, ("sm_80", "sm_90"), b"cubin sm_80"),
        (89, ("sm_80", "sm_86", "sm_90"), b"cubin sm_86"),
        (90, ("sm_80", "sm_90"), b"cubin sm_90"),
        (100, ("sm_80", "sm_90"), b"ptx sm_90"),
        (103, ("sm_80", "sm_100"), b"cubin sm_100"),
        (121, ("sm_90", "sm_120"), b"cubin sm_120"),
    ],
)
def test_code_is_chosen_by_the_architecture_of_the_device(device, archs, image):
    with fake_driver(device) as fake:
        cuda_standin.fresh_kernel(W, archs=archs)(*(on_device(a) for a in data()))
        assert fake.fake_image() == image


@pytest.mark.parametrize(("device", "archs"), [(75, ("sm_80", "sm_90")), (80, ("sm_86",))])
def test_device_without_code_is_an_error_that_names_what_is_embedded(device, archs):
    with fake_driver(device) as fake:
        k = cuda_standin.fresh_kernel(W, archs=archs)
        with pytest.raises(ArtifactError) as error:
            k(*(on_device(a) for a in data()))
        for text in (", ".join(archs), f"device 0 is sm_{device}", f"cuda:sm_{device}"):
            assert text in str(error.value)
        assert fake.fake_launches() == 0


@pytest.mark.parametrize(
    ("function", "code", "text"),
    [
        ("cuModuleLoadData", 209, "holds code for sm_80, sm_90"),
        ("cuModuleLoadData", 222, "driver is older than the compiler"),
        ("cuModuleLoadData", 2, "cannot be loaded to the device: CUDA error 2"),
        ("cuModuleGetFunction", 500, "does not hold the kernel"),
        ("cuLaunchKernel", 700, "cannot be launched: CUDA error 700, CUDA_ERROR_OF_THE_FAKE"),
        ("cuLaunchKernel", 3, "forked child"),
        ("cuDevicePrimaryCtxRetain", 2, "device cannot be used"),
        ("cuDeviceGetAttribute", 1, "architecture of the device is not known"),
    ],
)
def test_failure_of_the_driver_is_named_and_passes(function, code, text):
    with fake_driver(90) as fake:
        k = cuda_standin.fresh_kernel(W)
        inputs, out = [on_device(a) for a in data()], empty_on_device(W)
        fake.fake_fail(function.encode(), code)
        with pytest.raises(ArtifactError, match=text):
            k(*inputs, out=out)
        assert fake.fake_depth() == 0
        fake.fake_fail(b"", 0)
        assert k(*inputs, out=out) is out


def test_output_that_cannot_be_allocated_is_an_argument_error():
    with fake_driver(90) as fake:
        k, inputs = cuda_standin.kernel(W), [on_device(a) for a in data()]
        fake.fake_fail(b"cuMemAlloc_v2", 2)
        with pytest.raises(ArgumentError, match="60 bytes on CUDA device 0, cannot be allocated"):
            k(*inputs)


def test_device_that_is_not_there_is_an_error():
    with fake_driver(90) as fake:
        k = cuda_standin.fresh_kernel(W)
        arrays = [on_device(a) for a in data()]
        for array in arrays:
            array.memory.device = 5
        out = empty_on_device(W)
        out.memory.device = 5
        with pytest.raises(ArgumentError, match="on CUDA device 5; there are 1"):
            k(*arrays, out=out)
        for array in (*arrays, out):
            array.memory.device = 0
        assert fake.fake_launches() == 0


def test_nothing_is_launched_for_an_empty_output_or_an_empty_grid():
    empty = Workload((0, 5), (0, 5), (5,))
    with fake_driver(90) as fake:
        k = cuda_standin.fresh_kernel(empty)
        k(*(on_device(np.zeros(s, t)) for s, t in (((0, 5), "?"), ((0, 5), "f4"), (5, "f4"))))
        assert fake.fake_launches() == fake.fake_modules() == 0
        cuda_standin.fresh_kernel(W, blocks="0")(*(on_device(a) for a in data()))
        assert fake.fake_launches() == 0


def test_callers_context_is_left_as_it_was():
    with fake_driver(90, 90) as fake:
        import ctypes

        k = cuda_standin.fresh_kernel(W)
        inputs, out = [on_device(a, device=1) for a in data()], empty_on_device(W, 1)
        fake.cuCtxPushCurrent_v2(ctypes.c_void_p(0x1000))
        k(*inputs, out=out)
        assert launched(fake).device == 1
        current = ctypes.c_void_p()
        fake.cuCtxGetCurrent(ctypes.byref(current))
        assert (current.value, fake.fake_depth()) == (0x1000, 1)


def test_memory_of_outputs_is_freed():
    from te_select.runtime import device_array

    with running(W):
        k, inputs = cuda_standin.kernel(W), [on_device(a) for a in data()]
        before = len(device_array._exported)
        for _ in range(5):
            k(*inputs)
        assert len(device_array._exported) == before
        inputs[0].__dlpack__()
        assert len(device_array._exported) == before


def test_library_loads_without_a_driver_and_says_what_is_missing_at_the_call(tmp_path):
    path = cuda_standin.build([W], tmp_path / "select.so")
    script = f"""
        import sys
        sys.modules["tvm"] = None
        import numpy as np, te_select
        kernel = te_select.load({str(path)!r})
        class OnCuda:
            def __init__(self, array):
                self.array = array
            def __dlpack_device__(self):
                return 2, 0
            def __dlpack__(self, **options):
                import ctypes, tvm_ffi
                from te_select.runtime import dlpack
                capsule = self.array.__dlpack__()
                tensor = dlpack.DLTensor.from_address(dlpack._get_pointer(capsule, b"dltensor"))
                tensor.device_type = 2
                return capsule
        arrays = [np.ones((3, 5), bool), *(np.ones((3, 5), "f4") for _ in range(3))]
        try:
            kernel(*map(OnCuda, arrays[:3]), out=OnCuda(arrays[3]))
        except te_select.ArtifactError as error:
            print(error)
        try:
            kernel(*map(OnCuda, arrays[:3]))
        except te_select.ArgumentError as error:
            print(error)
    """
    if cuda_standin.real_driver() and not cuda_standin.fake_library.cache_info().currsize:
        pytest.skip("a real NVIDIA driver is installed")
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    lines = run.stdout.splitlines()
    assert len(lines) == 2, run.stderr
    assert "no NVIDIA driver" in lines[0] and "libcuda.so.1" in lines[0]
    assert "cannot be allocated: there is no NVIDIA driver" in lines[1]


def test_manifest_says_what_the_library_needs(tmp_path):
    path = cuda_standin.build([W], tmp_path / "select.so")
    manifest, _ = te_select.runtime.artifact.read_manifest(path)
    assert manifest.kind == "cuda"
    assert manifest.target["archs"] == ["sm_80", "sm_90"]
    text = path.with_suffix(".json").read_text().replace('"kind": "cuda"', '"kind": "abacus"')
    path.with_suffix(".json").write_text(text)
    with pytest.raises(ArtifactError, match="kind is 'abacus', expected x86 or cuda"):
        te_select.load(path)
