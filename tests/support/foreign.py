"""Libraries for other instruction sets, called under an emulator."""

import os
import shutil
import subprocess
from pathlib import Path
from struct import pack, unpack

import numpy as np
from tvm_ffi import libinfo

from te_select.backends.c_compiler import compiler_for
from te_select.runtime.artifact import stored
from te_select.schedules.cpu.isa import ISAS

SOURCE = Path(__file__).with_name("foreign_host.c")
_BOOL = 6  # kDLBool
_PAGE = 4096


def emulator(isa):
    """The command that runs programs of an instruction set here; None if there is none."""
    machine, triple = ISAS[isa].machine, ISAS[isa].triple
    program = shutil.which(f"qemu-{machine}")
    root = Path("/usr", triple)
    return [program, "-L", str(root)] if program and root.is_dir() else None


def build_host(isa, folder):
    """Compile the program that calls libraries of an instruction set."""
    program = folder / f"host-{isa}"
    includes = [f"-I{path}" for path in libinfo.include_paths()]
    command = [*compiler_for(ISAS[isa].triple), "-std=gnu11", "-O1", "-rdynamic", *includes]
    subprocess.run([*command, SOURCE, "-o", program, "-ldl"], check=True)
    return program


class Host:
    """A process that calls the kernels of a library; a context manager.

    Parameters
    ----------
    command
        The emulator, the program of `build_host` and the library.
    environment
        More variables for it.
    """

    def __init__(self, *command, **environment):
        self._process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        self._library = Path(str(command[-1]))

    def kernels(self):
        """The kernels of the library."""
        for record in stored.read(self._library).manifest.kernels:
            yield ForeignKernel(self, record.workload, self._library)

    def call(self, name, *operands):
        """Call an exported function of the element types' bits; RuntimeError where it fails."""
        cond, then, else_, out = operands
        symbol = f"__tvm_ffi_{name}__bits".encode()
        request = [pack("<i", len(symbol)), symbol]
        for array in (cond, then, else_, out):
            code, bits = (_BOOL, 8) if array is cond else (1, 8 * array.dtype.itemsize)
            request.append(pack("<iii", code, bits, array.ndim))
            request.append(pack(f"<{array.ndim + 2}q", *array.shape, array.nbytes, _at(array)))
            request.append(array.tobytes())
        same = [i for i, array in enumerate((cond, then, else_)) if array is out]
        request.append(pack("<i", *same or [-1]))
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(request))
        self._process.stdin.flush()
        status, stray, said = unpack("<iii", self._read(12))
        message = self._read(said).decode()
        out.reshape(-1).view(np.uint8)[:] = np.frombuffer(self._read(out.nbytes), np.uint8)
        if status or stray:
            raise RuntimeError(message or "bytes outside out were written")

    def _read(self, size):
        assert self._process.stdout is not None
        found = self._process.stdout.read(size)
        if len(found) < size:
            raise RuntimeError(f"the emulated process has ended with {self._process.wait()}")
        return found

    def __enter__(self):
        return self

    def __exit__(
        self,
        kind,
        error,
        traceback,
    ):
        self._process.communicate()
        if error is None:
            assert self._process.returncode == 0


class ForeignKernel:
    """A kernel as `te_select.verify.verify` takes it."""

    copies = True

    def __init__(self, host, workload, path):
        self.workload = workload
        self.path = path
        self._host = host

    def __call__(self, cond, then, else_, *, out=None):
        """Compute into ``out``."""
        self._host.call(self.workload.name, cond, then, else_, out)
        return out


def _at(array):
    """Where in a page an array lies."""
    return int(array.ctypes.data) % _PAGE
