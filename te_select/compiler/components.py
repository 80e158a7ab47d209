"""What a library is made of and by, for the manifest."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from te_select.backends import machine
from te_select.backends.c_compiler import compiler_for
from te_select.backends.programs import first_line
from te_select.backends.targets import ResolvedTarget
from te_select.runtime.artifact.fields import Component

_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_KNOWN = {  # by the names that versions have: the component's name, its licence, and its part
    "te_select": ("te-select", "Apache-2.0", "code"),
    "tvm_ffi": ("Apache TVM FFI", "Apache-2.0", "code"),  # its C header
    "tvm": ("Apache TVM", "Apache-2.0", "compiler"),
}
_C_COMPILERS = {  # by a word of the line that they print
    "clang": ("Clang", "Apache-2.0 WITH LLVM-exception"),
    "gcc": ("GCC", "GPL-3.0-or-later WITH GCC-exception-3.1"),
}


def components(target: ResolvedTarget, versions: dict[str, str]) -> tuple[Component, ...]:
    """List what a library is made of and by.

    Parameters
    ----------
    target
        What it is for.
    versions
        As the manifest has them.

    Returns
    -------
    tuple of Component
        te-select, TVM, LLVM and the compilers, each with its version and licence.
    """
    known = [
        Component(name, versions[key], part, licence)
        for key, (name, licence, part) in _KNOWN.items()
    ]
    return (*known, *machine(target.kind).components(), _c_compiler(compiler_for(target.triple)))


@functools.cache
def _c_compiler(command: tuple[str, ...]) -> Component:
    line = first_line(*command, "--version") or ""
    # The line of GCC has the name under which it was called, such as cc; only GCC has this option.
    text = "gcc" if first_line(*command, "-dumpfullversion") and "clang" not in line else line
    known = (each for word, each in _C_COMPILERS.items() if word in text.lower())
    name, licence = next(known, (Path(command[0]).name, ""))
    found = _NUMBER.findall(line)
    return Component(name, found[-1] if found else "unknown", "compiler", licence)
