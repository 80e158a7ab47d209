"""The C half under ThreadSanitizer, called from one to four threads at a time.

All calls share one pool of helper threads: one call has it, and the others run alone meanwhile. The
program (``threads.c``) compares every result, and makes tasks fail now and then. It sets the clock
ahead, so that the pool uses its helpers again soon after it has put them off.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from soak import driver
from soak.found import Found
from te_select import Workload
from te_select.backends.cpu import link
from te_select.runtime.call.cpu.decisions import Decisions

_MAIN = Path(__file__).with_name("threads.c")
_WORKLOAD = Workload(("n",), ("n",), ("n",), "int32")
_ENTRY = link.KernelEntry(_WORKLOAD, (link.Version("soak_kernel", Decisions(bytes_per_thread=64)),))
_ENVIRONMENT = {"TE_SELECT_NUM_THREADS": "4", "TSAN_OPTIONS": "halt_on_error=1"}


def attack(
    seed: int, found: Found, calls: int = 5_000, sources: Sequence[Path] = driver.SOURCES
) -> None:
    """Compile the program, and let its threads make the calls."""
    with tempfile.TemporaryDirectory() as folder:
        program = driver.compile_driver(
            _MAIN,
            [_ENTRY],
            Path(folder),
            "-fsanitize=thread",
            "-Dclock_gettime=soak_clock",
            f"-DSELECT=__tvm_ffi_{_WORKLOAD.name}",
            sources=sources,
        )
        numbers = driver.run((str(program), str(seed), str(calls)), found, _ENVIRONMENT)
    if numbers is not None:
        made, helped = numbers
        found.tried("calls under ThreadSanitizer", made)
        found.tried("of these with helpers", helped)
