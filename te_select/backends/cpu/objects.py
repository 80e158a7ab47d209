"""Object files of scheduled kernels. If there are many, several processes lower and compile them.

Threads would not help: TVM compiles a module on one thread, and lets other threads wait.
"""

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tvm.target import Target

from te_select.backends import limits
from te_select.backends.cpu import lowering
from te_select.backends.programs import last_lines
from te_select.backends.scheduled import Scheduled
from te_select.errors import SelectError, ToolchainError

MANY = 48  # functions; with fewer, starting a process and importing tvm takes longer than it saves
MOST_PROCESSES = 8
_LOOK_SECONDS = 0.5  # between looks at what is done


def write(
    kernels: Mapping[str, Scheduled],
    target: Target,
    stem: Path,
    progress: Callable[[int, int], None],
) -> list[Path]:
    """Write position-independent code of kernels.

    Parameters
    ----------
    kernels
        The kernels, by the names of their raw functions.
    target
        The TVM target.
    stem
        The path of the object files without a number and ``.o``.
    progress
        Called with the number of files that are written and of all files.

    Returns
    -------
    list[pathlib.Path]
        The object files. Their order depends only on the kernels.

    Raises
    ------
    ToolchainError
        If a process fails.
    """
    if sum(len(one.functions) for one in kernels.values()) < MANY:
        path = stem.with_name(f"{stem.name}.o")
        _compile(kernels, target, path)
        return [path]
    # The number of files is fixed, so that the library does not depend on the number of CPUs here.
    paths = [stem.with_name(f"{stem.name}{i}.o") for i in range(MOST_PROCESSES)]
    for i, path in enumerate(paths):
        share = dict(list(kernels.items())[i::MOST_PROCESSES])
        # The scheduled functions are a hundredth of the lowered ones.
        path.with_suffix(".pickle").write_bytes(pickle.dumps((share, target)))
    count = min(MOST_PROCESSES, len(os.sched_getaffinity(0)))
    processes = [_start(paths[i::count]) for i in range(count)]
    try:
        _finish(processes, lambda: progress(sum(path.exists() for path in paths), len(paths)))
    except ToolchainError:
        for refused in filter(Path.exists, (path.with_suffix(".error") for path in paths)):
            raise pickle.loads(refused.read_bytes()) from None
        raise
    return paths


def _start(paths: Sequence[Path]) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", __name__, *map(str, paths)]
    return subprocess.Popen(
        command,
        cwd=paths[0].parent,  # python -m looks for modules in the current folder
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _finish(processes: Sequence[subprocess.Popen[bytes]], look: Callable[[], None]) -> None:
    try:
        for process in processes:
            stderr = _waited(process, look)
            if process.returncode:
                raise ToolchainError(
                    f"a process that compiles ended with {process.returncode}: {last_lines(stderr)}"
                )
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def _waited(process: subprocess.Popen[bytes], look: Callable[[], None]) -> bytes:
    """What a process has written to stderr when it has ended."""
    while True:
        look()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_LOOK_SECONDS)[1]


def _compile(kernels: Mapping[str, Scheduled], target: Target, path: Path) -> None:
    functions = []
    for name, one in kernels.items():
        with limits.tvm_errors_as_ours(one.workload):
            functions += lowering.lower_kernel(one, name, target)
    lowering.build(functions, target).write_to_file(str(path), "o")


def _main(*paths: str) -> None:
    """Make each object from the file beside it; this is what a process runs."""
    for path in map(Path, paths):
        kernels, target = pickle.loads(path.with_suffix(".pickle").read_bytes())
        try:
            _compile(kernels, target, path)
        except SelectError as error:
            path.with_suffix(".error").write_bytes(pickle.dumps(error))
            raise


if __name__ == "__main__":
    _main(*sys.argv[1:])
