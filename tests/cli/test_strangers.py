"""Files of strangers: only what says that it loads a library runs the library's code."""

import contextlib
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from pytest import fixture, mark, raises

import te_select
from te_select.backends.programs import c_compiler
from te_select.base import cache
from te_select.records import writer
from te_select.records.folders import RECORDS, SESSIONS, WORKLOADS
from te_select.runtime.artifact import embedded, header, stored
from te_select.runtime.call.cpu import features
from tests.support import flat, masked_rows, script
from tests.support.cli import FLAGS, run, run_json
from tests.support.tuning import make

WORKLOAD = masked_rows(4, 5)
HOSTILE = """
#include <stdio.h>
__attribute__((constructor)) static void run(void) {{
  FILE* file = fopen("{ran}", "w");
  if (file) fclose(file);
}}
"""


def link(folder, manifest):
    """A library with a valid manifest, whose code writes a file beside it as it is loaded."""
    (folder / "hostile.c").write_text(HOSTILE.format(ran=folder / "ran"))
    (folder / "note.s").write_text(embedded.assembly(manifest))
    path = folder / "hostile.so"
    sources = [folder / "hostile.c", folder / "note.s"]
    subprocess.run([*c_compiler(), "-shared", "-fPIC", *sources, "-o", path], check=True)
    path.write_bytes(embedded.seal(path.read_bytes()))
    return path


@fixture(scope="module")
def manifest(tmp_path_factory):
    path = tmp_path_factory.mktemp("honest") / "mask.so"
    return stored.read(te_select.export([WORKLOAD], path, tuning_logs=False)).manifest


@fixture
def hostile(tmp_path, manifest):
    return link(tmp_path, manifest)


def as_model(suffix, *words):
    return lambda path: run(*words, "--model", path.rename(path.with_suffix(suffix)))


def as_logs(*words):
    """The library in the place of every file of tuning logs, and beside them."""

    def call(path):
        folder = path.parent / "logs" / "x86-64-v3"
        folder.mkdir(parents=True)
        for name in (SESSIONS, WORKLOADS, RECORDS, "mask.so"):
            shutil.copy(path, folder / name)
        mine = str(path.parent / "mine")
        run(*(w.format(theirs=folder.parent, mine=mine) for w in words))

    return call


def as_entry(*words):
    """The library in the place of an entry of the cache."""

    def call(path):
        folder = Path(os.environ[cache.FOLDER])
        shutil.copy(path, folder / cache.name_of(WORKLOAD.name, "0" * cache.DIGITS))
        run(*words)

    return call


READING = {
    "inspect": lambda path: run("inspect", path),
    "inspect --json": lambda path: run_json("inspect", path),
    **{
        f"inspect --source {form}": lambda path, form=form: run("inspect", path, "--source", form)
        for form in ("te", "scheduled", "tir", "llvm", "asm")
    },
    **{f"inspect --model {x}": as_model(x, "inspect") for x in (".onnx", ".xml", ".json", ".so")},
    **{
        f"{verb} --workloads": lambda path, verb=verb: run(verb, "--workloads", path, "-o", "x.so")
        for verb in ("compile", "bench", "tune")
    },
    "compile --model": as_model(".so", "compile"),
    "tune --library": lambda path: run("tune", "--library", path),
    "tune --captured": lambda path: run("tune", "--captured", path),
    "logs import": as_logs("logs", "import", "{theirs}", "--tuning-logs", "{mine}"),
    "logs export": as_logs("logs", "export", "{mine}", "--tuning-logs", "{theirs}"),
    "logs list": as_logs("logs", "list", "--tuning-logs", "{theirs}"),
    "logs best": as_logs("logs", "best", *FLAGS, "--tuning-logs", "{theirs}"),
    "logs prune": as_logs("logs", "prune", "--tuning-logs", "{theirs}"),
    "compile --tuning-logs": as_logs(
        "compile", *FLAGS, "--tuning-logs", "{theirs}", "-o", "{mine}.so",
    ),
    "cache info": as_entry("cache", "info"),
    "cache clear": as_entry("cache", "clear"),
    "env": as_entry("env"),
    "read_model": te_select.read_model,
    "stored.read": stored.read,
}  # fmt: skip


@mark.parametrize("what", READING)
def test_what_only_reads_runs_no_code(hostile, monkeypatch, what):
    monkeypatch.setenv(cache.FOLDER, str(hostile.parent / "cache"))
    (hostile.parent / "cache").mkdir(0o700)
    with contextlib.suppress(te_select.SelectError):
        READING[what](hostile)
    assert not (hostile.parent / "ran").exists()


def test_what_loads_runs_the_code(hostile):
    """So the test above can fail."""
    script("import sys, te_select; te_select.load(sys.argv[1])", hostile)
    assert (hostile.parent / "ran").exists()


def test_inspect_of_a_file_says_what_needs_no_code(hostile, manifest):
    document = run_json("inspect", hostile)
    assert (document["loads_here"], document["in_effect"]) == ("yes", {})
    assert "here" not in document["kernels"][0]
    assert document["files_written"] == ["hostile.json", "hostile.h"]
    assert run_json("inspect", hostile)["files_written"] == []
    found = stored.read(hostile)
    assert hostile.with_suffix(".json").read_bytes() == found.manifest.to_text(found.sha256)


def test_inspect_of_a_file_names_the_features_that_are_missing(tmp_path, manifest):
    present = next(x for x in sorted(features.features()) if not features.missing([x]))
    target = {**manifest.target, "cpu_features": ["cheese", present]}
    path = link(tmp_path, replace(manifest, target=target))
    assert run_json("inspect", path)["loads_here"].endswith(
        "this CPU lacks cheese; compile it for a target that this CPU can run, or load it on one "
        "that has them"
    )
    assert run_json("inspect", path)["files_written"] == []


def test_terminal_obeys_nothing_that_a_manifest_says(tmp_path, manifest):
    (kernel,) = manifest.kernels
    best = replace(kernel.best, origin="\x1b[2Jdefault", why="a\x1b]0;title\x07\nloads here  yes")
    path = link(tmp_path, replace(manifest, kernels=(replace(kernel, best=best),)))
    shown = run("inspect", path).stdout
    assert "\\x1b[2Jdefault" in shown
    assert "\x1b" not in shown and "\x07" not in shown
    assert shown.count("\nloads_here") == 1


def test_terminal_obeys_nothing_that_logs_say(tmp_path):
    entry = make(flat(100))
    said = {"machine": "\x1b[2Ja machine", "unsure": "\x1b[31mred"}
    writer.put(tmp_path / "x86-64-v4", [replace(entry, session={**entry.session, **said})])
    for verb in ("list", "prune"):
        done = run("logs", verb, "--tuning-logs", tmp_path)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\\x1b" in done.stdout + done.stderr


@mark.parametrize("version", ["1 */ int stranger(void); /*", "1 *" + "/" * 3])
def test_header_takes_no_code_of_a_manifest(manifest, version):
    hostile = replace(manifest, versions={**manifest.versions, "te_select": version})
    assert (
        header.text(hostile)
        .decode()
        .partition("*/")[0]
        .endswith(
            "threads. Pointers are to memory of the CPU. A call returns when out is written. "
        )
    )


def test_target_of_several_lines_is_refused(manifest):
    """In the comment of a header, a line that ends in a backslash joins the next one."""
    hostile = replace(manifest, target={**manifest.target, "name": "*\\\n/ int x; /*"})
    with raises(te_select.ArtifactError, match="expected a string of one line"):
        embedded.parse(hostile.to_text("0" * 64), "it")
