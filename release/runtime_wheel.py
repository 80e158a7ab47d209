"""Builds the wheels of te-select-runtime for this machine, or for another one.

There is one for each Python from 3.10 on that is found on the path and has its headers; that which
runs this file is among them. A Python that has what the build needs (NumPy, tvm-ffi, setuptools)
needs no network for it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from te_select.backends.c_compiler import compiler_for
from te_select.base.levels import TRIPLES, machine_of
from te_select.selecting.kernels.library import PREBUILT, SEAL

OLDEST = 10  # of Python 3
EXECUTED = 4  # SHF_EXECINSTR of ELF
FACTS = """
import importlib.util, json, sys, sysconfig
print(json.dumps({
    "minor": sys.version_info[1],
    "tag": sys.implementation.cache_tag,
    "include": sysconfig.get_path("include"),
    "header": sysconfig.get_config_h_filename(),
    "multiarch": sysconfig.get_config_var("MULTIARCH") or "",
    "ready": all(map(importlib.util.find_spec, ("numpy", "setuptools", "tvm_ffi"))),
}))
"""


def main() -> None:
    """Build the wheels."""
    triples = {machine_of(triple): triple for triple in TRIPLES.values()}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path, help="the folder of the runtime's project")
    parser.add_argument("kernels", type=Path, help="the library of te-select where build")
    parser.add_argument("dist", type=Path, help="the folder that gets the wheels")
    parser.add_argument("machine", choices=triples, help="what uname -m says on the machine")
    asked = parser.parse_args()
    own = asked.machine == platform.machine()
    asked.dist.mkdir(parents=True, exist_ok=True)
    bring(asked.kernels, asked.project / "te_select/prebuilt")
    for python, facts in pythons().items():
        with tempfile.TemporaryDirectory() as folder:
            variables = {} if own else cross(triples[asked.machine], Path(folder), facts)
            options = [] if own else [f"-C--build-option=--plat-name=linux_{asked.machine}"]
            options += ["--no-build-isolation"] if facts["ready"] else []
            words = ("wheel", "--quiet", "--no-deps", "--wheel-dir", str(asked.dist), *options)
            command = [sys.executable, "-m", "pip", "--python", python, *words, str(asked.project)]
            done = subprocess.run(command, check=False, env={**os.environ, **variables})
        if done.returncode and python == sys.executable:
            sys.exit(f"no wheel for {python}, see above")
        if done.returncode:
            print(f"no wheel for {python}, see above; others are built", file=sys.stderr)


def bring(kernels: Path, folder: Path) -> None:
    """Put the kernels of where() into a project, with the seal that `PREBUILT` describes.

    The seal holds where the sections of machine code begin and end, and the library without them.
    """
    image = kernels.read_bytes()
    (table,) = struct.unpack_from("<Q", image, 40)
    (count,) = struct.unpack_from("<H", image, 60)
    sections = struct.iter_unpack("<IIQQQQIIQQ", image[table : table + 64 * count])
    code = [(at, at + size) for _, _, flags, _, at, size, *_ in sections if flags & EXECUTED]
    begin = min(code)[0]
    end = max(code)[1]
    seal = struct.pack("<QQ", begin, end) + image[:begin] + image[end:]
    folder.mkdir(exist_ok=True)
    library = folder / PREBUILT.name
    library.write_bytes(image)
    library.with_suffix(SEAL).write_bytes(gzip.compress(seal, mtime=0))


def pythons() -> dict[str, dict[str, Any]]:
    """One Python of each version with its facts, that which runs this file first."""
    found = {sys.executable: described(sys.executable)}
    folders = [Path(folder) for folder in os.get_exec_path() if Path(folder).is_dir()]
    names = [path for folder in folders for path in sorted(folder.glob("python3.*"))]
    for path in names:
        if re.fullmatch(r"python3\.\d+", path.name):
            minor = int(path.suffix[1:])
            if minor < OLDEST or minor in {each["minor"] for each in found.values()}:
                continue
            if facts := described(str(path)):
                found[str(path)] = facts
            else:
                print(f"passed over {path}: it does not run, or has no headers", file=sys.stderr)
    return found


def described(python: str) -> dict[str, Any]:
    """What is to be known of a Python; nothing if it does not run, or lacks its headers."""
    done = subprocess.run([python, "-c", FACTS], capture_output=True, text=True, check=False)
    facts: dict[str, Any] = {} if done.returncode else json.loads(done.stdout)
    return facts if facts and Path(facts["include"], "Python.h").exists() else {}


def cross(triple: str, folder: Path, facts: dict[str, Any]) -> dict[str, str]:
    """The variables by which setuptools compiles for another machine.

    The headers are those of a Python and a NumPy of this machine. All that the C API uses of them
    is the same on every Linux of 64 bits and little-endian order; how Python itself was compiled is
    not. Debian has ``pyconfig.h`` in a folder for each triple, and asks for that of the target.
    """
    compiler = shlex.join(compiler_for(triple))
    header = Path(facts["header"])
    found = header.parents[1] / facts["multiarch"] / header.parent.name / header.name
    copy = folder / triple / header.parent.name / header.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes((found if found.exists() else header).read_bytes())
    return {
        "CC": compiler,
        "LDSHARED": f"{compiler} -shared",
        "CPPFLAGS": f"-I{folder}",
        "SETUPTOOLS_EXT_SUFFIX": f".{facts['tag']}-{triple}.so",
    }


if __name__ == "__main__":
    main()
