"""Runs the code blocks of a page in the current folder, in the order of the page.

    python -m tests.support.run_page PAGE MARK ...

Blocks without a mark are run, and those with one of the marks given. Python blocks share their
names, as in one session. The lines of the blocks that were run are written to ``ran.json``.
"""

import ast
import json
import shlex
import subprocess
import sys
from pathlib import Path

from te_select.cli.verbs import app
from tests.support.documents import RUN, blocks

_SHELL = set("$&|<>;`\n")
_COMPILERS = {"c": ("cc", "-std=c11"), "cpp": ("c++", "-std=c++17")}


def run(block, names):
    """Run a block; an error leaves this process with a traceback that names the page and line."""
    if block.given:
        exec(block.given, names)
    if block.language == "python":
        module = ast.parse(block.text, block.page)
        ast.increment_lineno(module, block.line - 1)
        exec(compile(module, block.page, "exec"), names)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language in _COMPILERS:
        source = Path(f"block.{block.language}")
        source.write_text(names.pop("around", "BLOCK").replace("BLOCK", block.text))
        command = [*_COMPILERS[block.language], "-Wall", "-Werror", "-Ibuild", "-c", source]
        subprocess.run([*command, "-o", "block.o"], check=True)
    else:
        _run_shell(block.text)


def _run_shell(text):
    """Run commands, those of te-select in this process if they need nothing of the shell."""
    lines = text.replace("\\\n", " ").splitlines()
    commands = [shlex.split(line, comments=True) for line in lines]
    if not all(
        words[:1] in ([], ["te-select"]) and not _SHELL & set("".join(words)) for words in commands
    ):
        subprocess.run(["bash", "-euo", "pipefail", "-c", text], check=True)
        return
    for words in filter(None, commands):
        try:
            app(words[1:])
        except SystemExit as end:
            if end.code:
                raise


def main(page, *marks):
    """Run the blocks of a page."""
    ran = []
    names = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language in RUN and block.mark in ("", *marks):
            print(f"---- {block.place}", flush=True)
            try:
                run(block, names)
            except BaseException:
                print(f"---- failed: {block.place}", file=sys.stderr, flush=True)
                raise
            ran.append(block.line)
    Path("ran.json").write_text(json.dumps(ran))


if __name__ == "__main__":
    main(*sys.argv[1:])
