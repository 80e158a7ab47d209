"""Gives wheels of te-select-runtime the manylinux tag that auditwheel finds, or says why not.

Run ``python release/manylinux.py DIST``, after the wheels were built into that folder. The kernels
that a wheel brings lie in it compressed, so auditwheel is given a copy with the library itself.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

TAG = re.compile(r'platform\s+tag:\s+"(manylinux_\w+)"')


def main() -> None:
    """Tag every wheel of a folder that is for Linux alone."""
    for wheel in sorted(Path(sys.argv[1]).glob("te_select_runtime-*-linux_*.whl")):
        with tempfile.TemporaryDirectory() as folder:
            shown = audited(unpacked(wheel, Path(folder) / wheel.name))
        if found := TAG.search(shown):
            words = ("tags", "--remove", "--platform-tag", found[1], str(wheel))
            subprocess.run([sys.executable, "-m", "wheel", *words], check=True)
        else:
            print(f"{wheel.name} gets no manylinux tag: {' '.join(shown.split())}")


def unpacked(wheel: Path, copy: Path) -> Path:
    """Copy a wheel, with its compressed files unpacked."""
    with zipfile.ZipFile(wheel) as given, zipfile.ZipFile(copy, "w") as made:
        for name in given.namelist():
            data = given.read(name)
            if name.endswith(".so.gz"):
                data = gzip.decompress(data)
            made.writestr(name.removesuffix(".gz"), data)
    return copy


def audited(wheel: Path) -> str:
    """What auditwheel says of a wheel."""
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


if __name__ == "__main__":
    main()
