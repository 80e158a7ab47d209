"""RVV: code for it, and its detection."""

import re
import subprocess

from pytest import mark
from tvm_ffi import libinfo

from te_select import Workload
from te_select.backends.c_compiler import compiler_for
from te_select.backends.targets import resolve
from te_select.compiler import sources
from te_select.runtime.c import FOLDER
from te_select.schedules.cpu.isa import RISCV64
from tests.backends.cpu.test_foreign import RVV, emulator, innermost_loops
from tests.support import output

SCALAR, VECTORS = "riscv64", "riscv64:rva23"
BOTH = f"{SCALAR},{VECTORS}"


def built(folder, text, *options):
    """A program for riscv64."""
    source = folder / "main.c"
    source.write_text(text)
    command = [*compiler_for(RISCV64.triple), "-std=gnu11", "-Wall", "-Werror", "-rdynamic"]
    command += [f"-I{path}" for path in (*libinfo.include_paths(), FOLDER, FOLDER / "cpu")]
    subprocess.run([*command, source, "-o", folder / "main", *options], check=True)
    return folder / "main"


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


@mark.slow
def test_vectors_are_found_by_hwprobe_else_by_the_auxv(tmp_path):
    """By neither, if the system has switched them off."""
    program = built(tmp_path, DETECTION)
    assert output(*emulator(SCALAR, RVV.format(128)), program) == "00011011 0 10"


@mark.slow
def test_longer_registers_than_were_tried_are_not_used(tmp_path):
    text = (FOLDER / "cpu/cpu_features.c").read_text()
    limited = text.replace("LONGEST = 128", "LONGEST = 15")  # what 128 bits have, less one
    program = built(tmp_path, DETECTION.replace('#include "cpu_features.c"', limited))
    assert (
        limited != text and output(*emulator(SCALAR, RVV.format(128)), program) == "00000000 0 00"
    )


BRANCH = re.compile(r"(?:b\w+|j)\s.*?(\.LBB\w+)$")
N = 1 << 20


def code_of(loop):
    return [line for line in loop if not line.startswith("#")]


@mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@mark.parametrize("shapes", [((N,), (N,), (N,)), ((N,), (N,), ()), ((1, N), (3, N), ())])
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


def test_config_is_that_of_the_level():
    assert RISCV64.vectors(RISCV64.levels[0], 4) == (16, 4)
    assert RISCV64.vectors(RISCV64.levels[1], 4) == (64, 4)
    assert resolve(f"{VECTORS}, {SCALAR}").name == BOTH
    levels = [level.cpu_features for level in resolve(BOTH).levels]
    assert levels == [(), ("v",)]


@mark.parametrize("has, name", [("v", VECTORS), ("zve32x", SCALAR), ("", SCALAR)])
def test_native_is_the_best_level_of_this_machine(monkeypatch, has, name):
    monkeypatch.setattr(
        "te_select.runtime.call.cpu.features.missing",
        lambda needed: [x for x in needed if x != has],
    )
    monkeypatch.setattr("te_select.backends.cpu.target.platform.machine", lambda: "riscv64")
    assert resolve("native").name == name
