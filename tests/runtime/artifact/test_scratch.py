"""Errors if there is no room on the disk, and folders that killed processes leave behind."""

import errno
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest

import te_select
from te_select.runtime.artifact import scratch
from tests.support.cases import the_others_slow

FLAGS = ["--cond", "4,1", "--then", "4,5", "--else", ""]
LIMITED = """
    import resource, sys

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
"""


def alone(code: str, *args: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED) + textwrap.dedent(code), *map(str, args)],
        stderr=subprocess.PIPE, text=True, check=False, timeout=300,
        **({"stdout": subprocess.PIPE} | options),
    )  # fmt: skip


def one_error(done: subprocess.CompletedProcess[str], code: int = 1) -> str:
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("te-select: error: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


COMMAND = """
    limit(int(sys.argv.pop(1)))
    from te_select.cli import main
    main()
"""


@pytest.mark.parametrize(
    ("verb", "size"),
    the_others_slow(
        itertools.product(("compile", "inspect", "bench"), (0, 100_000)), [("compile", 0)]
    ),
)
def test_no_room_for_temporary_files_names_their_folder(
    tmp_path: Path, size: int, verb: str
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = {
        "compile": [*FLAGS, "-o", tmp_path / "x.so"],
        "inspect": FLAGS,
        "bench": [*FLAGS, "--peers", "none", "--rounds", "1"],
    }[verb]
    done = alone(COMMAND, size, verb, *words, env={**os.environ, "TMPDIR": str(temporary)})
    said = one_error(done)
    assert str(temporary) in said
    assert "set TMPDIR to another folder" in said
    assert [path.name for path in tmp_path.rglob("*")] == ["temporary"]


def test_temporary_folder_that_is_missing_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "x.so"
    environment = {**os.environ, "TMPDIR": str(tmp_path / "nonexistent")}
    done = alone(COMMAND, -1, "compile", *FLAGS, "-o", path, env=environment)
    assert done.returncode == 0, done.stderr
    assert te_select.load(path)


def test_full_tmpdir_is_named_though_python_skips_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A C compiler does not pass it over, and names a file that nobody knows."""
    full, other = tmp_path / "full", tmp_path / "other"
    full.mkdir()
    other.mkdir()
    monkeypatch.setenv("TMPDIR", str(full))
    monkeypatch.setattr(tempfile, "tempdir", str(other))

    def without_room(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", without_room)
    with pytest.raises(scratch.NoRoomError, match=f"{full} has no room for 1024 KiB .* set TMPDIR"):
        scratch.make()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    with pytest.raises(scratch.NoRoomError, match=f"{other} has no room"):
        scratch.make()
    assert names(full) == names(other) == set()


def test_export_without_room_leaves_nothing(tmp_path: Path) -> None:
    kernel = te_select.compile(te_select.Workload((4,), (4,), (4,)))
    code = """
    import te_select
    kernel = te_select.load(sys.argv[1])
    limit(1000)
    try:
        kernel.export(sys.argv[2])
    except te_select.ArtifactError as error:
        print(error)
    """
    folder = tmp_path / "build"
    done = alone(code, kernel.path, folder / "x.so")
    assert done.returncode == 0, done.stderr
    assert f"x.so cannot be written: File too large (folder {folder})" in done.stdout
    assert not list(folder.iterdir())


def test_no_file_appears_before_all_are_written(tmp_path: Path) -> None:
    code = """
    from pathlib import Path
    from te_select.errors import ArtifactError
    from te_select.runtime.artifact.atomic import replace_all
    limit(10)
    try:
        replace_all({Path(sys.argv[1], "a"): b"", Path(sys.argv[1], "b"): b"more than ten bytes"})
    except ArtifactError as error:
        print(error)
    """
    done = alone(code, tmp_path)
    assert "b cannot be written: File too large" in done.stdout, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "module", "function"),
    [("--csv", "te_select.bench.report", "write_csv"), ("--plot", "te_select.bench.plot", "plot")],
)
def test_results_without_room_leave_no_file(
    tmp_path: Path, flag: str, module: str, function: str
) -> None:
    if flag == "--plot":
        pytest.importorskip("matplotlib")
    code = """
    import importlib
    module, function = sys.argv.pop(1), sys.argv.pop(1)
    loaded = importlib.import_module(module)
    if function == "plot":
        importlib.import_module("matplotlib.font_manager")  # writes a list of fonts, once
    write = getattr(loaded, function)

    def without_room(*args):
        limit(10)
        write(*args)

    setattr(loaded, function, without_room)
    from te_select.cli import main
    main()
    """
    path = tmp_path / ("x.csv" if flag == "--csv" else "x.png")
    words = ["bench", *FLAGS, "--peers", "none", "--rounds", "1", flag, path]
    done = alone(code, module, function, *words)
    *progress, done.stderr = done.stderr.splitlines(keepends=True)
    assert progress[-1].startswith("measuring: 1 of 1 steps select_")
    said = one_error(done)
    assert f"{path} cannot be written: File too large (folder {tmp_path})" in said
    assert "medians of 1" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["env"], ["env", "--json"], ["--help"]])
def test_full_standard_output_is_one_line(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = alone(COMMAND, -1, *words, stdout=full)
    assert "standard output cannot be used: No space left on device" in one_error(done)


MAKER = """
    import os, signal, sys, time
    from te_select.runtime.artifact import scratch
    made = scratch.make(room=int(sys.argv[1]))
    (made / "kernels.o").write_bytes(b"x" * 1000)
    if "fork" in sys.argv and not os.fork():
        os.close(1)
        time.sleep(600)
    print(made, flush=True)
    if "die" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    if "leave" in sys.argv:
        os._exit(0)
    scratch.remove(made)
"""


@pytest.fixture
def temporary(tmp_path: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}


def made_by(environment: dict[str, str], *words: Any) -> Path:
    done = alone(MAKER, *words, env=environment)
    assert done.returncode == (-signal.SIGKILL if "die" in words else 0), done.stderr
    return Path(done.stdout.strip())


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("room", [0, 1 << 16])
@pytest.mark.parametrize("end", ["die", "leave"])
def test_folder_of_a_killed_process_is_removed_by_the_next(
    tmp_path: Path, temporary: dict[str, str], end: str, room: int
) -> None:
    left = [made_by(temporary, room, end) for _ in range(2)]
    assert not left[0].exists()  # by the second
    assert (left[1] / "kernels.o").exists()
    assert not made_by(temporary, room).exists()
    assert names(tmp_path) == set()


def test_folder_stays_while_a_forked_child_may_use_it(
    tmp_path: Path, temporary: dict[str, str]
) -> None:
    code = textwrap.dedent(MAKER).replace("os.close(1)", "print(os.getpid(), flush=True)")
    words = [sys.executable, "-c", code, "0", "fork", "die"]
    with subprocess.Popen(words, env=temporary, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        said = {parent.stdout.readline().strip() for _ in range(2)}
        (child,) = (int(line) for line in said if line.isdigit())
        try:
            (made,) = (Path(line) for line in said if not line.isdigit())
            parent.wait()
            made_by(temporary, 0)
            assert made.exists()
        finally:
            os.kill(child, signal.SIGKILL)
        parent.stdout.read()  # ends with the child
    made_by(temporary, 0)
    assert names(tmp_path) == set()


def test_forked_child_leaves_its_parents_folder_alone() -> None:
    with scratch.folder(room=0) as folder:
        child = os.fork()
        if not child:
            scratch.remove(folder)
            os._exit(0)
        os.waitpid(child, 0)
        assert folder.exists()
    assert not folder.exists()
    scratch.remove(folder)


def test_no_descriptor_is_left_open() -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(20):
        with scratch.folder():
            pass
    assert len([*Path("/proc/self/fd").iterdir()]) == before
