"""Object files of lowered functions. If there are many functions, several processes make them.

Threads would not help: TVM compiles a module on one thread, and lets other threads wait.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tvm import IRModule, ir, tirx
from tvm.target import Target

from te_select.backends.cpu import lowering
from te_select.backends.programs import last_lines
from te_select.errors import ToolchainError

MANY = 48  # functions; with fewer, starting a process and importing tvm takes longer than it saves
MOST_PROCESSES = 8
_LOOK_SECONDS = 0.5  # between looks at what is done


def write(
    functions: Sequence[tirx.PrimFunc],
    target: Target,
    stem: Path,
    progress: Callable[[int, int], None],
) -> list[Path]:
    """Write position-independent code of functions.

    Parameters
    ----------
    functions
        Functions that `lowering.lower` made, with different symbols.
    target
        The TVM target.
    stem
        The path of the object files without a number and ``.o``.
    progress
        Called with the number of files that are written and of all files.

    Returns
    -------
    list[pathlib.Path]
        The object files. Their order depends only on the functions.

    Raises
    ------
    ToolchainError
        If a process fails.
    """
    if len(functions) < MANY:
        path = stem.with_name(f"{stem.name}.o")
        lowering.build(functions, target).write_to_file(str(path), "o")
        return [path]
    # The number of files is fixed, so that the library does not depend on the number of CPUs here.
    paths = [stem.with_name(f"{stem.name}{i}.o") for i in range(MOST_PROCESSES)]
    for i, path in enumerate(paths):
        share = {str(f.attrs["global_symbol"]): f for f in functions[i::MOST_PROCESSES]}
        path.with_suffix(".json").write_text(ir.save_json(IRModule(share)))
    stem.with_suffix(".target").write_text(json.dumps(dict(target.export()), default=list))
    count = min(MOST_PROCESSES, len(os.sched_getaffinity(0)))
    processes = [_start(stem.with_suffix(".target"), paths[i::count]) for i in range(count)]
    _finish(processes, lambda: progress(sum(path.exists() for path in paths), len(paths)))
    return paths


def _start(target: Path, paths: Sequence[Path]) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", __name__, str(target), *map(str, paths)]
    return subprocess.Popen(
        command,
        cwd=target.parent,  # python -m looks for modules in the current folder
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


def _main(target: str, *paths: str) -> None:
    """Make each object from the JSON file beside it; this is what a process runs."""
    of = Target(json.loads(Path(target).read_text()))
    for path in map(Path, paths):
        module = ir.load_json(path.with_suffix(".json").read_text())
        functions = [module[name] for name in module.get_global_vars()]
        lowering.build(functions, of).write_to_file(str(path), "o")


if __name__ == "__main__":
    _main(*sys.argv[1:])
