"""Every code block of every page is run, in the order of its page, or says why it is not."""

import json
import re
import shlex
import shutil
import subprocess
from os import environ, pathsep
from pathlib import Path
from sys import executable

from pytest import MonkeyPatch, fixture, importorskip, mark, raises
from typer.main import get_command

from te_select.cli.verbs import app
from te_select.runtime.call.cuda import driver
from tests.support.cli import run
from tests.support.documents import (
    CLONE,
    CUDA,
    FROM,
    NEEDS,
    NOT_RUN,
    PAGES,
    ROOT,
    RUN,
    SHOWN,
    SLOW,
    blocks,
    text_of,
)

ALL = [block for page in PAGES for block in blocks(page)]
LINKED = ("benchmarks", "examples")  # named by commands that are run at the top
TIMEOUT = 900  # seconds


class PageError(AssertionError):
    """A block failed; the message has the page, the line and what was printed."""


def pages_with(*marks):
    """Pages of which a block with one of these marks is run."""
    wanted = {block.page for block in ALL if block.language in RUN and block.mark in marks}
    return [page for page in PAGES if page in wanted]


@fixture(scope="session", autouse=True)
def kernels_of_where(tmp_path_factory):
    """One cache of the kernels of where() for all pages; the worker's parent folder is shared."""
    folder = tmp_path_factory.getbasetemp().parent / "kernels-of-where"
    with MonkeyPatch.context() as patch:
        patch.setenv("TE_SELECT_CACHE_DIR", str(folder))
        yield


def run_page(page, folder, *marks):
    """Run a page in a folder and with a home of its own."""
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "tuning_logs", folder / "tuning_logs")  # commands write to it
    own = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(folder))
    paths = {
        "PATH": pathsep.join([str(Path(executable).parent), environ["PATH"]]),
        "PYTHONPATH": pathsep.join(filter(None, [environ.get("PYTHONPATH"), str(ROOT)])),
    }
    done = subprocess.run(
        [executable, "-m", "tests.support.run_page", page, *marks],
        cwd=folder,
        env={**environ, **own, **paths},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise PageError(f"{done.stdout[-3000:]}\n{done.stderr[-5000:]}")
    ran = json.loads((folder / "ran.json").read_text())
    wanted = [b.line for b in blocks(page) if b.language in RUN and b.mark in ("", *marks)]
    assert ran == wanted


@mark.slow
@mark.parametrize("page", pages_with(""))
def test_blocks_of_a_page_run_in_its_order(page, tmp_path):
    run_page(page, tmp_path)


@mark.parametrize(
    "language, code",
    [
        ("python", "assert x == 2"),
        ("sh", "false\ntrue"),
        ("c", "int f(void) { return undeclared; }"),
        ("json", "[1, 2"),
    ],
)
def test_block_that_fails_is_named(language, code, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"```python\nx = 1\n```\n\n```{language}\n{code}\n```\n")
    with raises(PageError, match=rf"failed: {page}:6"):
        run_page(str(page), tmp_path)


@mark.long
@mark.parametrize("page", pages_with(SLOW))
def test_blocks_that_take_long_run_too(page, tmp_path):
    run_page(page, tmp_path, SLOW)


@mark.slow
@mark.parametrize("page", pages_with(NEEDS))
def test_blocks_run_where_their_packages_are(page, tmp_path, monkeypatch):
    for package in {name for b in blocks(page) if b.mark == NEEDS for name in b.reason.split()}:
        importorskip(package)
    monkeypatch.delenv("PYTHONPATH", raising=False)  # which hides torch
    run_page(page, tmp_path, NEEDS)


@mark.gpu
@mark.parametrize("page", pages_with(CUDA))
def test_blocks_for_cuda_run_where_there_is_a_device(page, tmp_path):
    assert not driver.missing()
    run_page(page, tmp_path, CUDA)


@mark.parametrize("block", ALL, ids=lambda block: block.place)
def test_block_is_run_or_says_why_it_is_not(block):
    assert block.language, (
        "name its language: python, sh, c, cpp, json, or text for what is no code"
    )
    assert block.mark in ("", SLOW, CUDA, CLONE, FROM, NEEDS, NOT_RUN)
    assert bool(block.reason) == (block.mark in (FROM, NEEDS, NOT_RUN)), "say why it is not run"
    if block.language in SHOWN:
        assert not any(words[:1] == ["te-select"] for words in commands(block.text))
    else:
        assert block.language in RUN or block.mark == NOT_RUN


@mark.parametrize(
    "block", [b for b in ALL if b.mark == FROM], ids=lambda block: f"{block.place} {block.reason}"
)
def test_block_of_a_file_stands_in_it(block):
    if block.reason.startswith("te-select "):
        printed = "".join(run(*block.reason.split()[1:]).stdout.split())
        shown = "".join(re.sub(r"  #.*", "", block.text).split()).replace(",)", ")").split("...")
        assert re.search(".*".join(map(re.escape, shown)), printed)
        return
    lines = iter([line.strip() for line in text_of(block.reason).splitlines()])
    shown = [line.strip() for line in block.text.splitlines() if line.strip()]
    assert not [line for line in shown if line not in lines], "in this order"


@mark.parametrize(
    "block",
    [b for b in ALL if b.language in ("sh", "python") and b.mark in (CUDA, NOT_RUN)],
    ids=lambda block: block.place,
)
def test_block_that_may_not_be_run_is_well_formed(block, tmp_path, monkeypatch):
    if block.language == "python":
        compile(block.text, block.page, "exec")
        return
    shell = subprocess.run(["bash", "-n"], input=block.text, text=True, check=False)
    assert shell.returncode == 0
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").touch()
    for words in commands(block.text):
        if words[:1] == ["te-select"]:
            check_flags(words[1:])


def commands(text):
    """The words of each line, up to a redirection."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue  # a word that goes on in the next line, as in JSON
        end = next((i for i, word in enumerate(words) if word in (">", "|", "&")), len(words))
        found.append(words[:end])
    return found


def check_flags(words):
    """Parse a command of te-select as it is parsed to be run; an unknown flag is an error."""
    command, words = get_command(app), list(words)
    while verbs := getattr(command, "commands", None):
        command = verbs[words.pop(0)]
    command.make_context(command.name, words)
