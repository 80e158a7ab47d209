"""Stages convert as NumPy does, bit for bit, on every instruction set and level."""

import struct
import subprocess

import numpy as np
from pytest import mark, param, skip

from te_select.backends.c_compiler import compiler_for
from te_select.backends.cpu import stage_code
from te_select.backends.targets import resolve
from te_select.operator.stages import BITS, QUIET, stages
from te_select.runtime.call.cpu import features
from te_select.schedules.cpu.isa import ISAS
from tests.support import foreign
from tests.support.machines import on_x86_64

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
FOREIGN = {"aarch64": "cortex-a53", "riscv64": "rv64,v=false", "riscv64:rva23": "rv64,v=true"}
TARGETS = [param(level, marks=on_x86_64) for level in LEVELS]
TARGETS += [param(each, marks=mark.slow) for each in FOREIGN]
MAIN = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef int32_t stage(void* source, void* made, int64_t n, int64_t flags);
DECLARED
static stage* const all[] = {NAMES};
int main(void) {
  int64_t given[5]; /* the stage, elements, flags, bytes of the source and of what is made */
  while (fread(given, 8, 5, stdin) == 5) {
    char *source = malloc(given[3] + 1), *made = malloc(given[4] + 1);
    fread(source + 1, 1, given[3], stdin); /* it is not aligned */
    if (all[given[0]](source + 1, made + 1, given[1], given[2])) return 1;
    fwrite(made + 1, 1, given[4], stdout);
    free(source);
    free(made);
  }
}
"""


def numbers(name):
    """All elements of at most two bytes; of others edges, ties and random bits."""
    dtype = np.dtype(name)
    if dtype.itemsize <= 2:
        return np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)
    rng = np.random.default_rng(0)
    if dtype.kind == "c":
        half = numbers(f"f{dtype.itemsize // 2}")
        zero = half[:1] * 0
        pairs = [(half, half[::-1]), (half, zero), (zero, half)]
        return np.concatenate([np.stack(np.broadcast_arrays(*p), 1) for p in pairs]).view(dtype)[
            :, 0
        ]
    bits = dtype.itemsize * 8
    unsigned = f"u{dtype.itemsize}"
    powers = np.array([1 << k for k in range(bits)], unsigned)
    edges = [powers + np.array(step).astype(unsigned) for step in (-2, -1, 0, 1, 2, 3)]
    if dtype.kind == "f":  # infinities and NaN of both kinds
        infinity = powers[-1] - powers[np.finfo(dtype).nmant]
        edges += [infinity | powers, powers[-1] | infinity | powers]
    edges.append(rng.integers(0, 2**bits, 2000, unsigned))
    found = np.concatenate([each.ravel() for each in edges])
    return np.concatenate([found, ~found]).view(dtype)


def expected(stage, source, flags):
    """What NumPy makes of elements; a signalling NaN of float16 becomes quiet by a flag."""
    if stage.source == BITS:
        bits = np.unpackbits(source, bitorder="little").view(bool)
        return bits[flags : flags + len(bits) - 64]
    with np.errstate(all="ignore"):
        made = source.astype(stage.target)
    if stage.source == "float16" and stage.target != "bool":
        kind = np.finfo(stage.target)
        unsigned = made.view(f"u{kind.bits // 8}").reshape(len(made), -1)
        signalling = np.isnan(source) & (source.view("u2") & 0x200 == 0)
        quiet = unsigned.dtype.type(1 << (kind.nmant - 1))
        unsigned[signalling, 0] &= ~quiet
        unsigned[signalling, 0] |= quiet * bool(flags)
    return made


def program(target, folder):
    """Compile all stages and a program that calls them; a command that runs it."""
    names = [f"stage_{number}" for number in range(len(stages()))]
    level = resolve(target)
    stage_code.write(
        stages(), dict(zip(stages(), names, strict=True)).get, level.tvm, folder / "stages.o"
    )
    declared = f"stage {', '.join(names)};"
    text = MAIN.replace("DECLARED", declared).replace("NAMES", ", ".join(names))
    (folder / "main.c").write_text(text)
    if target in LEVELS:
        if features.missing(level.cpu_features):
            skip(f"this CPU is no {target}")
        compiler, run = ["cc"], []
    else:
        isa = target.partition(":")[0]
        run = foreign.emulator(isa)
        if run is None:
            skip(f"no emulator of {isa} is installed")
        run += ["-cpu", FOREIGN[target]]
        compiler = compiler_for(ISAS[isa].triple)
    paths = folder / "main.c", folder / "stages.o"
    subprocess.run([*compiler, "-O1", *paths, "-lm", "-o", folder / "main"], check=True)
    return [*run, folder / "main"]


@mark.parametrize("target", TARGETS)
def test_every_element_becomes_what_numpy_makes_of_it(target, tmp_path):
    cases = []
    for number, stage in enumerate(stages()):
        every = numbers("uint8" if stage.source == BITS else stage.source)
        is_half = stage.source == "float16"
        each = (0, QUIET) if is_half else range(8) if stage.source == BITS else (0,)
        for flags in each:
            made = expected(stage, every, flags)
            if target.startswith("riscv64") and stage.source in ("float32", "complex64"):
                parts = made.view(made.real.dtype)
                if parts.itemsize == 8:  # its conversions forget what is in a NaN
                    parts[np.isnan(parts)] = np.nan
            count = len(made) // 64 if stage.source == BITS else len(made)
            head = struct.pack("<5q", number, count, flags, every.nbytes, made.nbytes)
            cases.append((f"{stage.name}, {flags}", head + every.tobytes(), made.tobytes()))
    given = b"".join(each for _, each, _ in cases)
    done = subprocess.run(program(target, tmp_path), input=given, capture_output=True, check=True)
    at = 0
    for name, _, wanted in cases:
        assert done.stdout[at : at + len(wanted)] == wanted, name
        at += len(wanted)
