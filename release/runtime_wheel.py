"""Builds the wheel of te-select-runtime for this machine, or for another one.

The wheel is for the Python that runs this file.
"""

from __future__ import annotations

import argparse
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
from te_select.levels import TRIPLES, machine_of

EXTENSION = "te_select/runtime/call/_extension"


def main() -> None:
    """Build the wheel, and see that the compiled extension is in it."""
    triples = {machine_of(triple): triple for triple in TRIPLES.values()}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", help="the folder of the runtime's project")
    parser.add_argument("dist", type=Path, help="the folder that gets the wheel")
    parser.add_argument("machine", choices=triples, help="what uname -m says on the machine")
    asked = parser.parse_args()
    dist, machine = asked.dist, asked.machine
    with tempfile.TemporaryDirectory() as folder:
        own = machine == platform.machine()
        variables = {} if own else cross(triples[machine], Path(folder))
        options = [] if own else [f"-C--build-option=--plat-name=linux_{machine}"]
        words = ("-m", "build", "--wheel", "--outdir", folder, *options, asked.project)
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
