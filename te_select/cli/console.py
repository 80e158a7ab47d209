"""Shared by all verbs: errors and exit codes, output for people and machines, progress."""

import contextlib
import errno
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress
from rich.table import Table
from typer import Exit
from typer.core import TyperCommand, TyperGroup

from te_select.base import interrupts
from te_select.base.imports import broken_torch_explained, not_installed
from te_select.errors import (
    ArgumentError,
    BroadcastError,
    DTypeError,
    SelectError,
    TargetError,
    notices,
)
from te_select.operator.broadcast import printable

FAILED, BAD_USAGE = 1, 2
_USUAL = {"--require-record": "own"}  # by options: the value that they have without one
_UNBOUNDED = 10_000  # characters of a line


class UsageError(Exception):
    """Flags that are missing, malformed or contradictory; the message says what is accepted."""


# Errors about a flag's value, found before any work; every other error is a failure.
_BAD_VALUES = (UsageError, ArgumentError, BroadcastError, DTypeError, TargetError)
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)


class Command(TyperCommand):
    """A verb that refuses an option of one value given twice, of which Typer takes the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the verb."""
        args = [*_with_values(args)]
        values, _, given = self.make_parser(ctx).parse_args(list(args))
        for option, times in Counter(given).items():
            if times > 1 and not (option.multiple or getattr(option, "is_flag", True)):
                raise UsageError(
                    f"{option.opts[-1]} is given {times} times; expected it once"
                    + (", a list such as x86-64-v2,x86-64-v3" if option.name == "target" else "")
                )
        rest = super().parse_args(ctx, args)
        for option in given:
            if values[option.name] == "" and isinstance(ctx.params.get(option.name), Path):
                raise UsageError(f"{option.opts[-1]} is empty; expected a path")
        return rest


def _with_values(words: Sequence[str]) -> Iterator[str]:
    """The words, with a value for each option whose value may be left out."""
    for word, after in itertools.zip_longest(words, words[1:], fillvalue="-"):
        yield word
        if word in _USUAL and after.startswith("-"):
            yield _USUAL[word]


class Group(TyperGroup):
    """The verbs; every error is one line on stderr, or JSON with ``--json``."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> Any:
        """Run a verb and exit with its code."""
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        notices.silence()
        try:
            # Typer's own `main` would draw a box around errors, and say nothing of an interrupt.
            with broken_torch_explained(), self.make_context("te-select", words) as context:
                code = self.invoke(context)
            if sys.stdout:
                sys.stdout.flush()
        except Exit as end:
            code = end.exit_code
        except (Exception, KeyboardInterrupt) as error:
            code = _fail(error, as_json="--json" in words)
        sys.exit(code if isinstance(code, int) else 0)


def show(document: Mapping[str, Any] | list[dict[str, Any]], as_json: bool) -> None:
    """Print what a verb has found, as one JSON document or for people; texts may be of others."""
    if as_json:
        print(json.dumps(document, indent=2, default=str))
    else:
        for each in document if isinstance(document, list) else (document,):
            _print(each)


@contextlib.contextmanager
def progress(what: str, *, lines: bool = False) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr while work runs, if that is a terminal.

    Parameters
    ----------
    what
        The work.
    lines
        Whether each step is a line if stderr is not a terminal, for work that takes minutes.

    Yields
    ------
    callable
        Takes the number of finished steps, the number of all steps, and a text: the name of the
        next step, or what the last one has found.
    """
    console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    said = -1
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None)

        def step(done: int, total: int, text: str = "") -> None:
            nonlocal said
            bar.update(task, completed=done, total=total, description=f"{what} {text}")
            if lines and not console.is_terminal and done != said:
                said = done
                console.print(f"{what}: {done} of {total} steps {text}".rstrip())

        yield step


def print_table(
    rows: Sequence[Mapping[str, Any]], right: Sequence[str] = (), least: Sequence[str] = ()
) -> None:
    """Print a table on stdout, numbers to the right; the first row's names are the header.

    Parameters
    ----------
    rows
        The rows.
    right
        The columns of texts that are numbers.
    least
        The columns that a narrow terminal leaves out, in this order. If there are any, only the
        first column goes over several lines.
    """
    console = Console(markup=False, highlight=False)
    unbounded = console.options.update(max_width=_UNBOUNDED)
    most_left_out = len(least) if console.is_terminal else 0
    for count in range(most_left_out + 1):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        columns = [name for name in rows[0] if name not in least[:count]]
        for name in columns:
            number = name in right or all(isinstance(row[name], (int, float)) for row in rows)
            table.add_column(
                name,
                justify="right" if number else "left",
                overflow="fold",
                no_wrap=bool(least) and name != columns[0],
            )
        for row in rows:
            table.add_row(*(_in_words(row[name]) for name in columns))
        width = console.measure(table, options=unbounded).maximum
        if width <= console.width:
            break
    if not console.is_terminal:
        console.width = width  # lines stay whole, so that they can be searched
    with console.capture() as shown:
        console.print(table)
    print(*map(str.rstrip, shown.get().splitlines()), sep="\n")
    if count:
        print(f"no room for {', '.join(least[:count])}: use a wider terminal, a file, or --json")


def _print(fields: Mapping[str, Any], indent: str = "") -> None:
    """Print names and values, aligned; what has parts of its own stands below its name."""
    width = max(map(len, fields))
    for name, value in fields.items():
        parts = list(value.values()) if isinstance(value, Mapping) else value
        if not isinstance(parts, (list, tuple)) or not parts or (indent and not _rows(parts)):
            print(f"{indent}{printable(name):<{width}}  {_in_words(value)}")
            continue
        print(f"{indent}{printable(name)}")
        if isinstance(value, Mapping):
            _print(value, f"{indent}  ")
        elif not _rows(parts):
            print(*(f"{indent}  {_in_words(each)}" for each in parts), sep="\n")
        elif any(_rows(row.values()) for row in parts):
            for head, *rest in (row.items() for row in parts):
                print(f"{indent}  {_in_words(head[1])}")
                _print(dict(rest), f"{indent}    ")
        else:
            print_table(parts)


def _rows(values: Any) -> bool:
    return any(isinstance(value, Mapping) for value in values)


def _in_words(value: Any) -> str:
    """A value on one line, without what a terminal would obey."""
    if value is None or value in ({}, ""):
        return "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{printable(str(key))}={_in_words(each)}" for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_in_words, value))}]"
    return printable(str(float(f"{value:.4g}") if isinstance(value, float) else value))


def _fail(error: BaseException, *, as_json: bool) -> int:
    """Say what went wrong, on one line; the exit code."""
    kind = type(error).__name__
    line = str(error)
    code = BAD_USAGE if isinstance(error, _BAD_VALUES) else FAILED
    # Before 3.12 Python wraps what is raised while an import makes a class.
    if any(isinstance(each, KeyboardInterrupt) for each in (error, error.__cause__)):
        line = interrupts.TEXT
        code = interrupts.CODE
    elif isinstance(error, ModuleNotFoundError):
        return _fail(not_installed("this", error), as_json=as_json)
    elif isinstance(error, BrokenPipeError):
        _drop_output()
        return FAILED
    elif isinstance(error, MemoryError):
        line = f"there is not enough memory: {error}"
    elif isinstance(error, OSError):
        what = error.filename
        line = error.strerror or str(error)
        if what is None and error.errno in _NO_ROOM:  # errors of files have a file name
            _drop_output()
            what, as_json = "standard output", False
        line = line if what is None else f"{what} cannot be used: {line}"
    elif hasattr(error, "format_message"):  # Typer's own
        kind = "UsageError"
        line = _explain(error, error.format_message())
        code = BAD_USAGE
    elif not isinstance(error, (SelectError, UsageError)):
        raise error
    line = printable(" ".join(line.split()))
    if as_json:
        show({"error": line, "kind": kind}, as_json)
    else:
        print(f"te-select: error: {line}", file=sys.stderr)
    return code


def _drop_output() -> None:
    """Drop output that stdout does not take; otherwise the interpreter complains at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error: Any, message: str) -> str:
    """Typer's message, and what would have been accepted."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    verbs = [name for name, each in getattr(command, "commands", {}).items() if not each.hidden]
    if command is None or not (verbs or hasattr(error, "option_name")):
        return message
    options = [name for param in command.params for name in param.opts if "-" in name]
    end = " Expected" if message.endswith("?") else "; expected"
    return f"{message.rstrip('.')}{end} one of {', '.join(verbs or options)}"
