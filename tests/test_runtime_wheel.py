"""What make does: its help, and the wheel of another machine by its compiler, names and tag."""

import json
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from sys import executable, version_info

from pytest import fixture, mark, raises

from te_select.base.levels import TRIPLES, machine_of
from tests.support import ROOT, loaded, output, text_of

PROGRAM = ROOT / "release/runtime_wheel.py"
HERE = platform.machine()
OTHER = "aarch64" if HERE == "x86_64" else "x86_64"
TRIPLE = next(each for each in TRIPLES.values() if machine_of(each) == OTHER)
needs_make = mark.skipif(shutil.which("make") is None, reason="no make")


@fixture
def builds(monkeypatch, tmp_path):
    """The module, in which builds are recorded: their words, their variables and their headers."""
    module = loaded(PROGRAM)
    module.recorded, module.failing = [], ()
    own = module.described(executable)
    module.pythons = lambda: {
        executable: own,
        "other": {**own, "tag": "cpython-399", "ready": False},
    }

    def run(words, *, check, env):
        python = words[words.index("--python") + 1]
        headers = [path for path in map(Path, env.get("CPPFLAGS", "").split("-I")) if path.name]
        headers = [str(path) for folder in headers for path in folder.rglob("pyconfig.h")]
        module.recorded.append((words, env, headers))
        return subprocess.CompletedProcess(words, int(python in module.failing))

    def build(machine):
        dist = str(tmp_path / "dist")
        monkeypatch.setattr("sys.argv", ["", "project", "where.so", dist, machine])
        module.main()
        return module.recorded[0]

    monkeypatch.setattr(module.subprocess, "run", run)
    monkeypatch.setattr(module, "bring", lambda kernels, folder: None)
    monkeypatch.setattr(module, "compiler_for", lambda triple: ("cross", f"--of={triple}"))
    module.build = build
    return module


def test_wheel_for_this_machine_is_built_as_it_is(builds, tmp_path):
    words, variables, headers = builds.build(HERE)
    assert not any("plat-name" in word for word in words) and not headers
    assert "SETUPTOOLS_EXT_SUFFIX" not in variables
    assert words[words.index("--wheel-dir") + 1] == str(tmp_path / "dist")


def test_wheel_for_another_machine_has_its_compiler_and_names(builds):
    words, variables, headers = builds.build(OTHER)
    assert f"-C--build-option=--plat-name=linux_{OTHER}" in words
    assert variables["CC"] == f"cross --of={TRIPLE}"
    assert variables["LDSHARED"] == f"cross --of={TRIPLE} -shared"
    suffix = variables["SETUPTOOLS_EXT_SUFFIX"]
    assert suffix != sysconfig.get_config_var("EXT_SUFFIX") and suffix.endswith(f"-{TRIPLE}.so")
    version = f"python{version_info.major}.{version_info.minor}"
    assert [header.partition(f"{TRIPLE}/")[2] for header in headers] == [f"{version}/pyconfig.h"]


def test_every_python_has_a_wheel_by_names_of_its_own(builds):
    builds.build(OTHER)
    suffixes = [variables["SETUPTOOLS_EXT_SUFFIX"] for _, variables, _ in builds.recorded]
    assert suffixes == [f".{sys.implementation.cache_tag}-{TRIPLE}.so", f".cpython-399-{TRIPLE}.so"]


def test_python_that_has_what_a_build_needs_asks_no_network(builds):
    builds.build(HERE)
    offline = ["--no-build-isolation" in words for words, _, _ in builds.recorded]
    assert offline == [True, False]


def test_only_the_python_that_runs_must_have_its_wheel(builds, capfd):
    builds.failing = ("other",)
    builds.build(HERE)
    assert capfd.readouterr().err == "no wheel for other, see above; others are built\n"
    builds.failing = (executable,)
    with raises(SystemExit, match=f"no wheel for {re.escape(executable)}, see above"):
        builds.build(HERE)


def script(folder, name, minor, include):
    """A program that answers as a Python of this version with headers in this folder."""
    facts = {"minor": minor, "tag": "", "include": str(include), "header": "", "multiarch": ""}
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(
        f"#!/bin/sh\necho '{json.dumps(facts)}'\n" if minor else "#!/bin/sh\nexit 127\n"
    )
    path.chmod(0o755)
    return str(path)


def test_pythons_are_of_one_version_each_and_have_headers(tmp_path, monkeypatch, capfd):
    module = loaded(PROGRAM)
    (tmp_path / "include").mkdir()
    (tmp_path / "include/Python.h").touch()
    first, second, there = tmp_path / "a", tmp_path / "b", tmp_path / "include"
    found = script(first, "python3.97", 97, there)
    script(second, "python3.97", 97, there)
    passed = script(first, "python3.98", 98, tmp_path), script(first, "python3.99", None, there)
    script(first, "python3.9", 9, there)
    script(first, "python3.97-config", 97, there)
    script(first, "python3.00", version_info[1], there)
    monkeypatch.setenv("PATH", f"{first}:{second}:{tmp_path / 'none'}")
    assert list(module.pythons()) == [executable, found]
    lines = [f"passed over {path}: it does not run, or has no headers" for path in passed]
    assert capfd.readouterr().err.splitlines() == lines


RUNTIME = "ls -t /given/dist/te_select_runtime-*-cp311-*.whl | head -n 1"
MINUTES = "This takes some minutes"
PLANNED = {
    "wheel DIST=there": [MINUTES, "runtime_wheel.py", "finish.py ", "/wheels/* there\n"],
    "wheel MACHINE=aarch64": [
        "where build --target aarch64 ",
        "runtime_wheel.py build/wheel/runtime build/wheel/where.so build/wheel/wheels aarch64\n",
    ],
    # The wheel that is built here is checked before anything is emulated.
    "arm64 ARM64=there": ["MACHINE=aarch64 DIST=there/dist", " check ", "make demo", "make test"],
    "arm64 ARM64=given": [RUNTIME],
}


@needs_make
@mark.parametrize("words", PLANNED)
def test_make_plans_these_steps_in_order(words):
    command = ["make", "-C", str(ROOT), f"BIN={Path(executable).parent}", "--dry-run"]
    shown = output(*command, *words.split())
    places = [shown.index(text) for text in PLANNED[words]]
    assert places == sorted(places)


@needs_make
def test_help_lists_every_target():
    targets = re.search(r"^\.PHONY: (.*)$", text_of("Makefile"), re.MULTILINE)
    assert targets is not None
    usual, helped = (output("make", "-C", ROOT, "-s", *words) for words in ((), ("help",)))
    assert usual == helped
    assert sorted(line.split()[0] for line in helped.splitlines()) == sorted(targets[1].split())
