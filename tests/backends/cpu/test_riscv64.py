"""RVV: code for it, its detection, and the level of a library, for vectors of several lengths."""

import re
import subprocess

import numpy as np
import pytest
from tvm_ffi import libinfo

from te_select import Workload
from te_select.backends.c_compiler import compiler_for
from te_select.backends.cpu import target as cpu_target
from te_select.backends.targets import resolve
from te_select.compiler import sources
from te_select.errors import ToolchainError
from te_select.runtime.c import FOLDER
from te_select.runtime.call.cpu import features
from te_select.schedules.cpu.isa import RISCV64
from te_select.verify.verify import verify_kernel
from tests.backends.cpu.test_foreign import WORKLOADS, compiled_for, innermost_loops
from tests.support import foreign
from tests.support.programs import output

SCALAR, VECTORS = "riscv64", "riscv64:rva23"
BOTH = f"{SCALAR},{VECTORS}"
LENGTHS = (128, 256, 512)
ODD = (*range(1, 36), 63, 65, 127, 129, 255, 257, 1023)
BITS = ("uint8", "uint16", "uint32", "uint64")
PATTERNS = [
    *((("n",), then, else_) for then in (("n",), ()) for else_ in (("n",), ())),
    *((("n", 1), ("n", inner), ("n", inner)) for inner in (3, 5, 17, 63)),
    (("n", 1), ("n", 7), (7,)),
    ((1, "n"), (3, "n"), ()),
    ((), ("n",), ("n",)),
]
ODD_SIZES = [
    Workload(*shapes, dtype, auto_broadcast="multidirectional")
    for shapes in PATTERNS
    for dtype in BITS
]


def cpu(length):
    """What qemu-user calls a CPU with vectors of so many bits; 0 for none."""
    return f"rv64,v=true,vlen={length},vext_spec=v1.0" if length else "rv64,v=false"


def emulated(length):
    command = foreign.emulator(RISCV64.name)
    if command is None:
        pytest.skip("no emulator of riscv64 is installed")
    return [*command, "-cpu", cpu(length)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("riscv64")


@pytest.fixture(scope="module")
def library(folder):
    """A library for CPUs with vectors."""
    return compiled_for(VECTORS, folder / "lib.so", [*WORKLOADS, *ODD_SIZES])


@pytest.fixture(scope="module")
def both(folder):
    """A library of two levels."""
    return compiled_for(BOTH, folder / "both.so", WORKLOADS)


@pytest.fixture(scope="module")
def host(folder):
    try:
        return foreign.build_host(RISCV64.name, folder)
    except ToolchainError as error:
        pytest.skip(str(error))


def wrong_results(process, tries=None):
    """The checks that did not pass."""
    results = [r for kernel in process.kernels() for r in verify_kernel(kernel, *tries or ())]
    assert len(results) >= len(WORKLOADS)
    return [(r.kernel, r.check, r.message) for r in results if not r.passed]


@pytest.mark.slow
@pytest.mark.parametrize("length", LENGTHS)
def test_every_pattern_and_width_computes_what_numpy_does(library, host, length):
    with foreign.Host(*emulated(length), host, library, TE_SELECT_NUM_THREADS="3") as process:
        assert wrong_results(process) == []


@pytest.mark.slow
@pytest.mark.parametrize("length", LENGTHS)
def test_odd_sizes_have_no_wrong_bit(library, host, length):
    rng = np.random.default_rng(length)
    with foreign.Host(*emulated(length), host, library) as process:
        for workload in ODD_SIZES:
            for n in ODD:
                shapes = (workload.cond_shape, workload.then_shape, workload.else_shape)
                cond, then, else_ = (
                    rng.integers(0, 256, [*(n if dim == "n" else dim for dim in shape), 8], "u1")
                    for shape in shapes
                )
                cond = np.array(cond[..., 0] % 3 == 0, np.uint8)
                then, else_ = (np.array(x.view(workload.dtype)[..., 0]) for x in (then, else_))
                expected = np.where(cond, then, else_)
                out = np.zeros_like(expected)
                process.call(workload.name, cond, then, else_, out)
                assert out.tobytes() == expected.tobytes(), (workload.name, n)


LEVEL_CALLER = """
#include <dlfcn.h>
#include <stdio.h>
#include <tvm/ffi/c_api.h>
__attribute__((visibility("default"))) void TVMFFIErrorSetRaisedFromCStr(const char* kind,
                                                                         const char* text) {
  printf("%s: %s", kind, text);
}
int main(int argc, char** argv) {
  TVMFFIAny level = {0};
  int (*call)(void*, const TVMFFIAny*, int32_t, TVMFFIAny*) = 0;
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : 0;
  *(void**)&call = library ? dlsym(library, "__tvm_ffi_te_select_level") : 0;
  if (!call) return 2;
  if (!call(0, 0, 0, &level)) printf("level %d", (int)level.v_int64);
  return 0;
}
"""


def built(folder, text, *options):
    """A program for riscv64."""
    source = folder / "main.c"
    source.write_text(text)
    command = [*compiler_for(RISCV64.triple), "-std=gnu11", "-Wall", "-Werror", "-rdynamic"]
    command += [f"-I{path}" for path in (*libinfo.include_paths(), FOLDER, FOLDER / "cpu")]
    subprocess.run([*command, source, "-o", folder / "main", *options], check=True)
    return folder / "main"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("length", "forced", "said"),
    [
        (0, "", "level 0"),
        *((length, "", "level 1") for length in (*LENGTHS, 1024)),
        (256, SCALAR, "level 0"),
        (0, VECTORS, f"TE_SELECT_LEVEL is {VECTORS}, and this CPU lacks v"),
        (256, "v", f"TE_SELECT_LEVEL is 'v'; expected {SCALAR} or {VECTORS}"),
    ],
)
def test_library_takes_the_level_of_the_cpu(both, tmp_path, length, forced, said):
    program = built(tmp_path, LEVEL_CALLER, "-ldl")
    words = [*emulated(length), "-E", f"TE_SELECT_LEVEL={forced}", program, both]
    assert said in output(*words)


@pytest.mark.slow
@pytest.mark.parametrize("length", [0, 256])
def test_library_of_two_levels_computes_what_numpy_does(both, host, length):
    with foreign.Host(*emulated(length), host, both) as process:
        assert wrong_results(process, (1,)) == []


DETECTION = """
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static int has_hwprobe, probed, state, hwcap;
static long faked(long number, void* pairs, long count, long size, void* cpus, int flags) {
  int64_t* pair = pairs;
  if (number != 258 || pair[0] != 4 || count != 1 || size || cpus || flags) return -1;
  pair[1] = probed ? 4 : 0;
  return has_hwprobe ? 0 : -1;
}
#define syscall faked
#define prctl(option, ...) ((option) == 70 ? state : -1)
#define getauxval(which) ((which) == AT_HWCAP && hwcap ? 1ul << 21 : 0ul)
#include "cpu_features.c"
int main(void) {
  for (int k = 0; k < 8; ++k) {
    has_hwprobe = k & 1, probed = k >> 1 & 1, hwcap = k >> 2, state = -1;
    printf("%d", te_select_cpu_has("v"));
  }
  state = 1 | 2 << 2; /* off, and on after the next execve */
  printf(" %d", te_select_cpu_has("v"));
  state = 2 | 1 << 2;
  printf(" %d%d", te_select_cpu_has("v"), te_select_cpu_has("zba"));
  return 0;
}
"""


@pytest.mark.slow
def test_vectors_are_found_by_hwprobe_else_by_the_auxv(tmp_path):
    """By neither, if the system has switched them off."""
    program = built(tmp_path, DETECTION)
    assert output(*emulated(128), program) == "00011011 0 10"


@pytest.mark.slow
def test_longer_registers_than_were_tried_are_not_used(tmp_path):
    text = (FOLDER / "cpu/cpu_features.c").read_text()
    limited = text.replace("LONGEST = 128", "LONGEST = 15")  # what 128 bits have, less one
    program = built(tmp_path, DETECTION.replace('#include "cpu_features.c"', limited))
    assert limited != text and output(*emulated(128), program) == "00000000 0 00"


BRANCH = re.compile(r"(?:b\w+|j)\s.*?(\.LBB\w+)$")
N = 1 << 20


def code_of(loop):
    return [line for line in loop if not line.startswith("#")]


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shapes", [((N,), (N,), (N,)), ((N,), (N,), ()), ((1, N), (3, N), ())])
def test_inner_loops_are_vector_selects(shapes, dtype):
    loops = innermost_loops(sources.source(Workload(*shapes, dtype), VECTORS, None, "asm"), BRANCH)
    # A merge, or a side that is loaded over the other by the mask.
    selects = [sum(bool(re.search(r"^vmerge|, v0\.t$", x)) for x in loop) for loop in loops]
    assert max(selects) >= (2 if dtype == "complex128" else 4)
    for loop in map(code_of, loops):
        assert any(line.startswith("v") for line in loop), "a scalar loop"
        accesses = [line for line in loop if re.match(r"v[ls]\w*\d+\.v\s", line)]
        assert all(re.match(r"v[ls]e8\.v", line) for line in accesses), "needs aligned addresses"
        assert not any("(sp)" in line for line in loop), "registers are put on the stack"
        assert sum(line.startswith("vslide") for line in loop) == 0, "pieces of a vector"


def test_floats_take_a_third_of_the_instructions():
    counts = []
    for target in (SCALAR, VECTORS):
        text = sources.source(Workload((64,), (64,), (64,)), target, None, "asm")
        kernel = text.partition("te_select_kernel_0:\n")[2].partition(".Lfunc_end")[0]
        counts.append(len(re.findall(r"^\t[a-z]", kernel, re.MULTILINE)))
    assert 3 * counts[1] < counts[0]


def test_config_is_that_of_the_level():
    assert RISCV64.vectors(RISCV64.levels[0], 4) == (16, 4)
    assert RISCV64.vectors(RISCV64.levels[1], 4) == (64, 4)
    assert resolve(f"{VECTORS}, {SCALAR}").name == BOTH
    levels = [level.cpu_features for level in resolve(BOTH).levels]
    assert levels == [(), ("v",)]


@pytest.mark.parametrize(
    ("isa", "name"),
    [("rv64imafdcv_zicntr_zba", VECTORS), ("rv64imafdc_zve32x_zvfh", SCALAR), ("rv64gc", SCALAR)],
)
def test_native_is_the_best_level_of_this_machine(monkeypatch, isa, name):
    monkeypatch.setattr(features, "cpu_info", lambda: {"isa": isa})
    features.features.cache_clear()
    monkeypatch.setattr(cpu_target.platform, "machine", lambda: "riscv64")
    try:
        assert resolve("native").name == name
    finally:
        features.features.cache_clear()
