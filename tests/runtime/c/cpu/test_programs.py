"""Kernels that TVM compiled, in programs in C: their threads, OpenMP's and the loader's lock."""

import shutil

from pytest import fixture, mark, param

from tests.support import flat
from tests.support.c_programs import export, output

N = flat("n")


@fixture(scope="module")
def kernel(tmp_path_factory):
    return export(tmp_path_factory.mktemp("programs"), N)


BY_GOLD = param(
    "mask.a -fuse-ld=gold",
    marks=mark.skipif(shutil.which("ld.gold") is None, reason="no gold"),
)


@mark.parametrize("library", ["./mask.so", "mask.a", "-static mask.a", BY_GOLD])
@mark.parametrize("openmp", [True, False])
def test_large_call_has_a_second_thread_but_inside_a_region(kernel, library, openmp):
    options = ("-fopenmp",) if openmp else ("-Wno-unknown-pragmas",)
    name = f"{openmp}{library}".replace("/", "").replace(" ", "")
    program = kernel.compile("in_region.c", name, *library.split(), *options)
    inside = 0 if openmp else 1
    assert output(program) == f"{inside} 1\n"


def test_plug_in_brings_library_and_runtime_of_its_region(kernel):
    options = ("-DPLUG_IN", "-shared", "-fPIC", "-fopenmp", "./mask.so")
    plug_in = kernel.compile("in_region.c", "region.so", *options)
    opener = kernel.compile("open_plug_in.c", "opener")
    assert output(opener, plug_in) == "0 1\n"


def test_library_needs_no_runtime_of_openmp(kernel):
    """Though the compiler has one."""
    found = (kernel.folder / "mask.so").read_bytes()
    assert b"omp_in_parallel" in found
    assert b"libgomp" not in found


@mark.parametrize("openmp", [True, False])
def test_constructor_may_wait_for_a_thread_that_calls(kernel, openmp):
    """The loader's lock is held meanwhile."""
    options = ["-shared", "-fPIC", "./mask.so"] + ["-fopenmp"] * openmp
    plug_in = kernel.compile("waiting_constructor.c", f"waiting{openmp}.so", *options)
    opener = kernel.compile("open_plug_in.c", f"opener{openmp}", *["-fopenmp"] * openmp)
    assert output(opener, plug_in) == "0 1\n"


@mark.parametrize("library, loading", [("./mask.so", 1), ("mask.a", 0)])
def test_only_the_first_call_opens_files_and_none_loads(kernel, library, loading):
    """A library tells the linker once that it stays. The refused call returns 1."""
    program = kernel.compile("no_loader.c", f"no_loader{library[-2:]}", library)
    assert output(program) == f"{loading} 1 0 0 1\n"


def test_no_function_needs_much_of_a_stack(kernel):
    """The first large call starts the pool."""
    program = kernel.compile("small_stack.c", "small_stack", "./mask.so")
    assert output(program) == "1 1\n"
