"""The tests of the C half, with AddressSanitizer and UBSan in all that they compile.

What they call and refuse is what they always do; a stray access or undefined behaviour ends them.
The variable CC brings the sanitizers into each library. Their runtime comes first in the process.
"""

import shutil
import subprocess
from collections.abc import Sequence

from soak import repeated
from soak.found import Found

_TESTS = (
    "tests/runtime/c/test_host.py",
    "tests/runtime/c/test_plain.py",
    "tests/runtime/test_doors.py",
    "tests/runtime/call/test_lying_capsules.py",
)
_COMPILER = "gcc -fsanitize=address,undefined -fno-sanitize-recover=all -g"


def attack(_seed: int, found: Found, tests: Sequence[str] = _TESTS) -> None:
    """Run the tests once."""
    if shutil.which("gcc") is None:
        found.tried("rounds without gcc, which is not installed")
        return
    variables = {
        "CC": _COMPILER,
        "LD_PRELOAD": " ".join(map(_library, ("libasan.so", "libstdc++.so"))),  # whose throw is met
        # Python frees little at its end, and libraries of one process share names.
        "ASAN_OPTIONS": "detect_leaks=0:detect_odr_violation=0",
    }
    repeated.run(tests, found, variables)


def _library(name: str) -> str:
    """The path of a library of gcc."""
    command = ("gcc", f"-print-file-name={name}")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
