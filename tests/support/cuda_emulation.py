"""Runs the source of CUDA kernels on the CPU, with every access checked."""

import dataclasses
import shutil
import subprocess
from collections.abc import Mapping
from ctypes import CDLL, addressof, c_char_p, c_int, c_int64, c_uint8, c_void_p
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tvm import s_tir

from te_select.backends.cuda.lowering import CudaFunction, lower, translation_unit
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.schedules.cuda import schedule as cuda

HEADER = Path(__file__).with_name("cuda_emulator.h")
WIDTHS = ("uint8", "bfloat16", "float32", "float64", "complex128")  # one element type of each width
OPTIONS = ("-std=c++17", "-O0", "-fPIC", "-shared", "-Wall", "-Wno-unknown-pragmas")


def build(source, symbols, folder, more=""):
    """Compile CUDA C++ to a library of CPU functions.

    Parameters
    ----------
    source
        A translation unit.
    symbols
        Its kernels.
    folder
        Where to write.
    more
        C++ to put after the kernels.

    Returns
    -------
    Path
        A library that exports, for every symbol,
        ``int te_select_emulated_SYMBOL(int64_t blocks, int threads, void** params)``, with a
        pointer to each parameter as cuLaunchKernel takes them, and the ``te_select_emulator_``
        functions of cuda_emulator.h.
    """
    compiler = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    entries = "".join(
        f'extern "C" int te_select_emulated_{symbol}(int64_t blocks, int threads, void** params) '
        f"{{ return emulator::launch(&{symbol}, blocks, threads, params); }}\n"
        for symbol in symbols
    )
    text = folder / "emulated.cc"
    text.write_text(f'#include "{HEADER}"\n{source}\n{entries}{more}', encoding="utf-8")
    library = folder / "libemulated.so"
    command = [compiler, *OPTIONS, str(text), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return library


@dataclass
class Emulated:
    """Kernels that run on the CPU, and the bytes that the last run loaded and streamed."""

    library: CDLL
    functions: Mapping[str, CudaFunction]
    loaded: dict[str, int] = field(default_factory=dict)
    streamed: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        functions,
        folder,
        edit=lambda source: source,
    ):
        """Compile kernels, after an edit of their source."""
        by_symbol = {function.symbol: function for function in functions}
        grids = "".join(
            f'extern "C" int64_t blocks_of_{f.symbol}(const int64_t* sizes) '
            f"{{ return {f.blocks}; }}\n"
            for f in functions
        )
        path = build(edit(translation_unit(functions)), list(by_symbol), folder, grids)
        library = CDLL(str(path))
        library.te_select_emulator_error.restype = c_char_p
        library.te_select_emulator_loaded.restype = c_int64
        library.te_select_emulator_streamed.restype = c_int64
        return cls(library, by_symbol)

    def allow(self, operands):
        """Let kernels read the memory of arrays from now on, and write that of the last."""
        given = list(operands)
        self.library.te_select_emulator_reset()
        for k, array in enumerate(given, 1):
            self.library.te_select_emulator_allow(
                c_void_p(array.ctypes.data), c_int64(array.nbytes), k == len(given)
            )

    def run(
        self,
        symbol,
        workload,
        sizes,
        operands,
    ):
        """Run a kernel on cond, then, else_ and out."""
        emulator = self.library
        function = self.functions[symbol]
        self.allow(operands)
        pointers = [c_void_p(array.ctypes.data) for array in operands]
        dims = [c_int64(sizes[name]) for name in workload.dim_names]
        values = [*pointers, *dims, (c_uint8 * 48)()]
        params = (c_void_p * len(values))(*(addressof(v) for v in values))
        grid = getattr(emulator, f"blocks_of_{symbol}")
        grid.restype = c_int64
        blocks = grid((c_int64 * max(1, len(dims)))(*(dim.value for dim in dims)))
        launch = getattr(emulator, f"te_select_emulated_{symbol}")
        launch(c_int64(blocks), c_int(function.threads), params)
        error = emulator.te_select_emulator_error().decode()
        assert not error, error
        names = ("cond", "then", "else_", "out")
        for k, name in enumerate(names):
            self.loaded[name] = emulator.te_select_emulator_loaded(k)
            self.streamed[name] = emulator.te_select_emulator_streamed(k)


def scheduled(workload, **knobs):
    """Schedule a workload with the default config, but for these knobs."""
    pattern = access_pattern(workload)
    config = dataclasses.replace(cuda.default_config(pattern, None), **knobs).checked(pattern)
    sch = s_tir.Schedule(definition(workload))
    cuda.apply(sch, pattern, None, config)
    return sch.mod["main"]


def lowered(workload, symbol="kernel", **knobs):
    """Schedule a workload, and lower it."""
    func = scheduled(workload, **knobs)
    return lower(func, symbol, workload.dim_names, access_pattern(workload))
