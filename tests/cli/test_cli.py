"""Tests of the command line: what it prints, and its exit codes."""

import os
import re
import shutil
import subprocess
import time
from importlib import metadata
from json import loads
from pathlib import Path
from shlex import join, split
from signal import SIG_IGN, SIGINT, signal
from subprocess import PIPE, Popen
from sys import executable

from pytest import mark

import te_select
from te_select.base import interrupts
from te_select.records.folders import SHIPPED
from tests.support import ended, output, python
from tests.support.cases import the_others_slow
from tests.support.cli import FLAGS, refused, run, run_json
from tests.support.libraries import beside


def words_of(line):
    """The words of a command line, in which FLAGS stands for those of a workload."""
    return split(line.replace("FLAGS", join(FLAGS)))


@mark.parametrize(
    "line, message",
    [
        ("compile FLAGS", "Missing option"),
        ("compile --cond 4 -o x.so", "no --then, --else; expected a shape such as"),
        ("compile -o x.so", "no workload is given; expected --cond, --then and --else"),
        ("compile --cond 4,,2 --then 4 --else '' -o x.so",
         "cond dim '' is not a name (letters, digits, _)"),
        ("compile FLAGS --op tf -o x.so", "expected one of onnx, openvino, onednn"),
        ("compile FLAGS --op onnx --axis 1 -o x.so", "must be left out"),
        ("compile FLAGS --auto-broadcast x -o x.so",
         "is not one of none, numpy, pdpd, multidirectional"),
        ("compile --workload { -o x.so", "--workload '{' is not JSON"),
        ("compile --workload {} -o x.so", "lacks cond_shape; expected the fields"),
        ("compile FLAGS --shape 4", "No such option: --shape"),
        ("build", "expected one of compile, verify, inspect, env"),
        ("verify", "Missing argument 'LIBRARY'"),
        ("verify a.so --check x", "'x' is not known; expected one of random, all_true"),
        ("verify a.so --seed -1", "--seed"),
        ("inspect a.so FLAGS", "--cond has no meaning beside a library"),
        ("inspect FLAGS --source c", "expected one of te, scheduled, tir, llvm, asm"),
        ("inspect FLAGS --source sass", "source 'sass' is not known for"),
        ("verify missing.so", "missing.so is missing; expected one, as te-select compile"),
        ("inspect a.so --target znver5", "--target has no meaning beside a library"),
        ("compile FLAGS -o x.txt", "-o x.txt does not end in .so"),
        ("compile FLAGS -o x.so --tuning-logs missing",
         "--tuning-logs 'missing' is no folder; expected one, or none"),
        ("compile FLAGS -o x.so --require-record nah", "expected one of own, near"),
        ("inspect FLAGS --target foo", "target 'foo' is not known; expected native"),
    ],
)  # fmt: skip
def test_bad_usage_exits_2_and_says_what_is_accepted(line, message):
    assert message in refused(*words_of(line))


@mark.parametrize(
    "line, kind",
    [
        ("compile --cond 3 --then 2 --else '' -o x.so", "BroadcastError"),
        ("compile FLAGS --dtype f4 -o x.so", "DTypeError"),
        ("inspect missing.so", "UsageError"),
        ("compile FLAGS -o /proc/x.so", "ArtifactError"),
    ],
)
def test_an_error_has_its_kind_in_json(line, kind):
    code = 1 if kind == "ArtifactError" else 2
    words = words_of(line)
    said = refused(*words, code=code)
    as_json = run(*words, "--json")
    assert as_json.exit_code == code
    document = loads(as_json.stdout)
    assert document["kind"] == kind
    assert f"te-select: error: {document['error']}\n" == said


def test_a_field_is_spelt_alike_everywhere(tmp_path):
    path = tmp_path / "mask.so"
    compiled = run_json("compile", *FLAGS, "-o", path)
    inspected = run_json("inspect", path)
    manifest = beside(path)
    assert compiled["kernels"] == inspected["kernels"]
    assert manifest["kernels"][0].items() <= compiled["kernels"][0].items()
    for document in (compiled, inspected):
        assert document["target"] == manifest["target"]
    assert compiled["import_seconds"] >= 0


@mark.parametrize("content", [b"\xff\xfe\x00\x80", b"[" * 100_000], ids=["no text", "deep"])
def test_files_that_cannot_be_read_are_one_line(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    for flags in (["--workloads", tmp_path / "file"], ["--workload", content.decode("latin-1")]):
        refused("compile", *flags, "-o", "x.so")


def test_env_names_versions_cpu_and_compiler():
    document = run_json("env")
    assert document["versions"]["te_select"] == metadata.version("te-select")
    assert document["cpu"]["features"]
    assert document["toolchains"]["c_compiler"]
    assert "c_compiler_riscv64" in document["toolchains"]
    assert "OMP_NUM_THREADS" in run("env").stdout


def test_no_arguments_show_the_help():
    result = run()
    assert (result.exit_code, result.stdout) == (0, run("--help").stdout)


INTERRUPTED = f"te-select: error: {interrupts.TEXT}\n"


@mark.parametrize(
    "line, during",
    [
        ("compile FLAGS -o LIBRARY", "te_select.compiler.export.build_scheduled"),
        ("logs list", "te_select.cli.console.Group.make_context"),
    ],
)
def test_interrupt_is_one_line_and_leaves_files_whole(line, during, one, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    library = Path(shutil.copy(one, tmp_path / "mask.so"))
    monkeypatch.setattr(during, interrupt)
    words = [str(library) if word == "LIBRARY" else word for word in words_of(line)]
    result = run(*words)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", INTERRUPTED)
    document = loads(run(*words, "--json").stdout)
    assert document["kind"] == "KeyboardInterrupt"
    assert list(tmp_path.iterdir()) == [library]
    assert library.read_bytes() == one.read_bytes()


@mark.parametrize("closing", ["2>&-", "2>&- <&-"])
def test_work_is_done_where_stderr_is_closed(tmp_path, closing):
    path = tmp_path / "mask.so"
    main = f"{executable} -c 'from te_select.cli import main; main()'"
    words = f"{main} compile --cond 4 --then 4 --else 4 -o {path} {closing}"
    assert subprocess.run(words, shell=True, check=False).returncode == 0
    assert path.exists()


@mark.parametrize(
    "words",
    [
        ["inspect", ""],
        ["inspect", "--model", ""],
        ["verify", ""],
        ["compile", *FLAGS, "-o", ""],
        ["logs", "import", ""],
        ["logs", "list", "--tuning-logs", ""],
        ["tune", "--captured", ""],
    ],
)
def test_empty_path_is_bad_usage(words):
    assert refused(*words).endswith(" is empty; expected a path\n")


def test_interrupt_during_imports_is_the_usual_exit_code():
    code = (
        "import signal, sys, te_select.cli\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "te_select.cli.main()"
    )
    done = ended(executable, "-c", code)
    assert (done.returncode, done.stderr) == (130, INTERRUPTED)


def test_interrupt_that_is_ignored_stays_so():
    before = signal(SIGINT, SIG_IGN)
    interrupts.end_at_once()
    assert signal(SIGINT, before) is SIG_IGN


# As Python ends, it takes the handlers away: then the signal ends it, which a shell calls 130, too.
ENDS = (130, INTERRUPTED), (0, ""), (-SIGINT, "")


@mark.parametrize("verb", the_others_slow([["env"], ["logs", "list"]], [["env"]]))
def test_interrupt_at_any_moment_is_no_traceback(verb):
    """From the first import on that te_select makes of itself; each begins later than the last."""
    code = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'te_select.base.forks': print('begun', flush=True)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from te_select.cli import main\n"
        "main()"
    )
    words = [executable, "-c", f"import sys; sys.argv[0] = 'te-select'\n{code}", *verb]
    pause = 0.0
    while pause < 0.6:
        with Popen(words, stdout=PIPE, stderr=PIPE, text=True) as process:
            assert process.stdout.readline() == "begun\n"
            time.sleep(pause)
            process.send_signal(SIGINT)
            _, said = process.communicate()
        assert (process.returncode, said) in ENDS, (pause, said)
        pause += 0.06


@mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_is_no_error(unbuffered):
    """The error comes when something is printed, or when all is flushed at the end."""
    code = (
        "import sys; sys.argv = ['te-select', 'env']\n"
        "sys.stdin.read()\n"
        "from te_select.cli import main\nmain()"
    )
    process = Popen(
        [executable, "-c", code], env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdin=PIPE, stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    process.stdout.close()
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1


def test_version_of_the_module_is_that_of_the_package():
    assert te_select.__version__ == metadata.version("te-select")
    assert "__version__" in te_select.__all__
    said = f"te-select {te_select.__version__}\n"
    assert run("--version").stdout == said
    assert output(executable, "-m", "te_select", "--version") == said


def test_help_imports_nothing_heavy():
    code = """
        import sys; sys.argv = ['te-select', '--help']
        from te_select.cli import main
        try: main()
        finally: print('HEAVY', sorted({'tvm', 'tvm_ffi', 'numpy'} & set(sys.modules)))
    """
    assert python(code).endswith("HEAVY []\n")


@mark.parametrize("verb", [[], ["compile"], ["where", "build"], ["logs"]])
def test_h_is_help_on_every_verb(verb):
    result = run(*verb, "-h")
    assert result.exit_code == 0
    assert f"Usage: te-select {' '.join(verb)}" in result.stdout
    assert result.stdout == run(*verb, "--help").stdout


@mark.parametrize(
    "line, message",
    [
        (
            "where build --target a --target=b",
            "--target is given 2 times; expected it once, a list such as x86-64-v2,x86-64-v3\n",
        ),
        ("compile --cond 1 --cond 2 --cond 3", "--cond is given 3 times; exp"),
        ("compile -o a.so --output b.so", "--output is given 2 times; expected it"),
        ("compile --cond", "Option '--cond' requires an argument."),
        ("logs list --json=1", "Option '--json' does not take a value."),
    ],
)
def test_option_with_too_many_values_or_too_few_is_refused(line, message):
    assert refused(*words_of(line)).startswith(f"te-select: error: {message}")


def test_warning_is_one_line(tmp_path):
    shutil.copytree(SHIPPED / "znver5", tmp_path / "logs" / "znver5")
    with (tmp_path / "logs" / "znver5" / "sessions.json").open("a") as file:
        file.write("torn\n")
    words = [*FLAGS, "--target", "znver5", "--tuning-logs", tmp_path / "logs"]
    words += ["-o", tmp_path / "x.so"]
    main = "from te_select.cli import main; main()"
    done = ended(executable, "-c", main, "compile", *words)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("te-select: ") for line in done.stderr.splitlines()), done.stderr
    assert "te-select: warning: " in done.stderr


def test_help_of_the_runtime_lists_its_own_verbs():
    hidden = {"te_select.tuning": None, "te_select.compiler.build": None}
    script = f"import sys; sys.modules.update({hidden!r}); from te_select.cli import main; main()"

    def shown(*words):
        done = ended(executable, "-c", script, *words)
        return done.stdout + done.stderr

    listed = re.findall(r"^│ ([a-z]+)  ", shown("--help"), re.MULTILINE)
    assert listed == ["verify", "inspect", "env", "cache"]
    assert shown("nonsense").endswith("expected one of verify, inspect, env, cache\n")
    assert "not installed; install the wheel of te-select by" in shown(
        "compile", *FLAGS, "-o", "none.so"
    )
    assert " compile " in run("--help").stdout


@mark.parametrize("verb", ["compile", "tune"])
def test_help_is_grouped_without_docstrings(verb):
    """Under -OO Python has no docstrings, and a dataclass would make one of its signature."""
    shown = output(executable, "-OO", "-m", "te_select", verb, "--help")
    assert "─ Which workloads ─" in shown and "Flags(" not in shown
