"""A stand-in for the NVIDIA driver, and kernels in plain C that it runs instead of CUDA's."""

import itertools
from contextlib import contextmanager, suppress
from ctypes import CDLL, POINTER, Structure, c_char, c_char_p, c_int, c_uint, c_void_p
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from te_select.backends.cuda import link
from te_select.backends.cuda.compilers import CudaBinary
from te_select.backends.cuda.lowering import CudaFunction
from te_select.operator.dtypes import ELEMENT_TYPES, numpy_dtype
from te_select.runtime.artifact.fields import Choice
from te_select.runtime.artifact.manifest import KernelRecord, Manifest, c_name
from te_select.runtime.call import loading
from te_select.runtime.call.cuda.device_array import DeviceArray
from te_select.runtime.call.cuda.kernel import CudaKernel
from tests.support import new_folder
from tests.support.operands import SHAPE, mask, random
from tests.support.runtime_standin import c_source, compile_c

SOURCE = Path(__file__).with_name("fake_cuda.c")
ARCHS = ("sm_80", "sm_90")
THREADS = 128
SHARED = ("-shared", "-w")
_builds = itertools.count()

_RUNNER = """
int run_{i}(int64_t blocks, int threads, void** p) {{
  char* scalars = p[{last}];
  void* at[4];
  for (int k = 0; k < 4; ++k) {{
    at[k] = *(void**)p[k];
    if (!at[k] && k < 3) at[k] = scalars + 16 * k;
  }}
  te_select_kernel_{i}(at[0], at[1], at[2], at[3]{dims}, 0, 0, 1);
  return 0;
}}
"""


class Launch(Structure):
    _fields_ = (
        ("symbol", c_char * 64),
        ("blocks", c_uint),
        ("threads", c_uint),
        ("stream", c_void_p),
        ("device", c_int),
        ("pointers", c_void_p * 4),
    )


@cache
def fake_library():
    """The stand-in; from now on the loader returns it for libcuda.so.1."""
    out = compile_c(SOURCE, new_folder() / "libcuda.so.1", *SHARED, "-Wl,-soname,libcuda.so.1")
    library = CDLL(str(out))
    library.fake_last.restype = POINTER(Launch)
    library.fake_image.restype = c_char_p
    return library


def real_driver():
    with suppress(OSError):
        CDLL("libcuda.so.1")
        return True
    return False


@contextmanager
def fake_driver(*archs):
    """Devices of these archs, such as 90, for as long as the block lasts."""
    if not fake_library.cache_info().currsize and real_driver():
        pytest.skip("a real NVIDIA driver is installed, in whose place nothing can be put")
    library = fake_library()
    library.fake_reset()
    for arch in archs:
        library.fake_device(arch)
    try:
        yield library
    finally:
        library.fake_reset()


def build(
    workloads,
    path,
    *,
    archs=ARCHS,
    blocks="7",
    functions=(),
    plain=False,
):
    """Link and describe a library whose machine code is a line of text."""
    cubins = {arch: f"cubin {arch}".encode() for arch in archs}
    entries = dict(zip(workloads, functions, strict=False)) or {
        w: CudaFunction(f"te_select_kernel_{i}", "", THREADS, blocks, None)
        for i, w in enumerate(workloads)
    }
    threads = Choice({"threads": THREADS}, "default", "")
    manifest = Manifest(
        tuple(KernelRecord(w, threads, c_function=c_name(w) if plain else "") for w in workloads),
        {
            "name": f"cuda:{','.join(archs)}",
            "kind": "cuda",
            "archs": list(archs),
            "cpu_features": [],
        },
        {"te-select": "0", "build": str(next(_builds))},  # no equal images
    )
    link.link(CudaBinary(cubins, f"ptx {archs[-1]}"), entries, manifest, path)
    return path


def fresh_kernel(workload, **how):
    """A kernel of a library of its own, which no device has seen."""
    loaded = loading.load(build([workload], new_folder() / "kernel.so", **how))
    assert isinstance(loaded, CudaKernel)
    return loaded


kernel = cache(fresh_kernel)


@cache
def runners(workloads):
    """Scalar loops ``run_0``, ... that compute the workloads from a launch's parameters."""
    source = new_folder() / "runners.c"
    text = c_source(workloads)
    for i, workload in enumerate(workloads):
        names = len(workload.dim_names)
        dims = "".join(f", *(int64_t*)p[{4 + k}]" for k in range(names))
        text += _RUNNER.format(i=i, last=4 + names, dims=dims)
    source.write_text(text)
    return CDLL(str(compile_c(source, source.with_suffix(".so"), *SHARED)))


@contextmanager
def running(*workloads, arch=90):
    """A device that computes the workloads for the kernels of a library, by their order."""
    with fake_driver(arch) as library:
        for i in range(len(workloads)):
            library.fake_runner(f"te_select_kernel_{i}".encode(), runners(workloads)[f"run_{i}"])
        yield library


def on_device(array, dtype=None, device=0):
    """A copy of a NumPy array in the stand-in's memory."""
    array = np.asarray(array, order="C")
    element = ELEMENT_TYPES[dtype or array.dtype.name]
    made = DeviceArray.empty(element, array.shape, device)
    made.write(array)
    return made


def empty_on_device(workload, device=0):
    shape = tuple(dim for dim in workload.out_shape if isinstance(dim, int))
    return DeviceArray.empty(workload.element, shape, device)


def read(array):
    return array.numpy(numpy_dtype(array.element.name))


def data(dtype="float32", shape=SHAPE):
    """Random cond, then and else_."""
    return mask(shape), random(shape, dtype, 1), random(shape, dtype, 2)


def data_on_device(device=0):
    """The same in memory of a device."""
    return [on_device(array, device=device) for array in data()]
