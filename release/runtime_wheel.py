"""Builds the wheel of te-select-runtime for this machine, or for another one.

Run ``python release/runtime_wheel.py PROJECT DIST MACHINE``: the project of the runtime, the folder
to write into, and what ``uname -m`` says on the machine, such as ``aarch64``. The wheel is for the
Python that runs this file.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

from te_select.backends.c_compiler import compiler_for
from te_select.schedules.cpu.isa import ISAS

EXTENSION = "te_select/runtime/call/_extension"


def main() -> None:
    """Build the wheel, and see that the compiled extension is in it."""
    project, dist, machine = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    triples = {isa.machine: isa.triple for isa in ISAS.values()}
    if machine not in triples:
        sys.exit(f"MACHINE is {machine!r}; expected one of {', '.join(triples)}")
    with tempfile.TemporaryDirectory() as folder:
        own = machine == platform.machine()
        variables = {} if own else cross(triples[machine], Path(folder))
        options = [] if own else [f"-C--build-option=--plat-name=linux_{machine}"]
        words = ("-m", "build", "--wheel", "--outdir", folder, *options, str(project))
        subprocess.run([sys.executable, *words], check=True, env={**os.environ, **variables})
        (wheel,) = Path(folder).glob("*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        if not any(name.startswith(EXTENSION) for name in names):  # optional, where it is installed
            sys.exit(
                f"{wheel.name} lacks {EXTENSION}: its C files could not be compiled, see above"
            )
        dist.mkdir(parents=True, exist_ok=True)
        (dist / wheel.name).write_bytes(wheel.read_bytes())


def cross(triple: str, folder: Path) -> dict[str, str]:
    """The variables by which setuptools compiles for another machine.

    The headers are those of the Python and the NumPy that run here. All that the C API uses of them
    is the same on every Linux of 64 bits and little-endian order; how Python itself was compiled is
    not. Debian has ``pyconfig.h`` in a folder for each triple, and asks for that of the target.
    """
    compiler = shlex.join(compiler_for(triple))
    header = Path(sysconfig.get_config_h_filename())
    own = sysconfig.get_config_var("MULTIARCH") or ""
    found = header.parents[1] / own / header.parent.name / header.name
    copy = folder / triple / header.parent.name / header.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes((found if found.exists() else header).read_bytes())
    return {
        "CC": compiler,
        "LDSHARED": f"{compiler} -shared",
        "CPPFLAGS": f"-I{folder}",
        "SETUPTOOLS_EXT_SUFFIX": f".{sys.implementation.cache_tag}-{triple}.so",
    }


if __name__ == "__main__":
    main()
