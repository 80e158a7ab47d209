"""Shared by all verbs: errors and exit codes, output for people and machines, progress."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from te_select import kinds, notices
from te_select.cli import INTERRUPTED, INTERRUPTION
from te_select.errors import (
    ArgumentError,
    BroadcastError,
    DTypeError,
    SelectError,
    TargetError,
    broken_torch_explained,
    not_installed,
    removed,
)
from te_select.operator.broadcast import printable

FAILED, BAD_USAGE = 1, 2
_FILE_WIDTH = 200  # columns of a table if stdout is not a terminal

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document and no more.")]
_TARGET = typer.Option(help=f"{', '.join(kind.targets for kind in kinds.KINDS.values())}, or JSON.")
TargetOption = Annotated[str, _TARGET]
OptionalTarget = Annotated[str | None, _TARGET]  # for inspect, where a library has a target
LevelOption = Annotated[
    str | None, typer.Option(help="Of a library for several, such as x86-64-v3.")
]

LogsOption = Annotated[
    str | None,
    typer.Option(
        "--tuning-logs", help="A folder of records, or none; default: your own, then the shipped."
    ),
]

ConfigOption = Annotated[
    list[str] | None, typer.Option(help="A knob by hand, such as piece=4096; repeatable.")
]


def tuning_logs(text: str | None) -> str | Literal[False] | None:
    """The value of ``--tuning-logs`` as `te_select.compile` takes it."""
    return False if text == "none" else text


def parse_knobs(texts: Sequence[str] | None) -> dict[str, Any]:
    """The knobs of ``--config``, with values of JSON; raises as `parse_pairs`."""
    return parse_pairs("--config", texts, "piece=4096 or rows=true", json.loads)


def parse_pairs(
    flag: str, texts: Sequence[str] | None, example: str, parse: Callable[[str], Any] = str
) -> dict[str, Any]:
    """The values of a flag that each give a name something.

    Raises
    ------
    UsageError
        If one is malformed, or a name is given twice.
    """
    found: dict[str, Any] = {}
    for text in texts or ():
        try:
            name, value = text.split("=", 1)
            parsed = parse(value)
        except ValueError as error:
            raise UsageError(f"{flag} {text!r}: expected, for example, {example}") from error
        if name in found:
            raise UsageError(f"{flag} {name} is given twice; expected it once")
        found[name] = parsed
    return found


def no_meaning(where: str, **flags: Any) -> None:
    """Refuse flags that have a value and would be ignored, such as "beside --model".

    Raises
    ------
    UsageError
        If there is such a flag.
    """
    for name, value in flags.items():
        if value is not None and value is not False and value != []:
            flag = name.replace("_", "-")
            raise UsageError(f"--{flag} has no meaning {where}; leave it out")


class UsageError(Exception):
    """Flags that are missing, malformed or contradictory; the message says what is accepted."""


def check_known(
    flag: str, value: str | None, known: Iterable[str], problem: str = "is not known"
) -> None:
    """Refuse the value of a flag that is none of those that there are."""
    if value not in (None, *known):
        raise UsageError(f"{flag} {value!r} {problem}; expected one of {', '.join(known)}")


_BAD_VALUES = (UsageError, ArgumentError, BroadcastError, DTypeError, TargetError)
"""Errors about a flag's value, found before any work; every other error is a failure."""
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)


class Group(TyperGroup):
    """The verbs; every error is one line on stderr, or JSON with ``--json``."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> Any:
        """Run a verb and exit with its code."""
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        as_json = "--json" in words
        notices.silence()
        try:
            # Typer's own `main` would draw a box around errors, and say nothing of an interrupt.
            with broken_torch_explained(), self.make_context("te-select", words) as context:
                code = self.invoke(context)
            if sys.stdout is not None:
                sys.stdout.flush()
        except (SelectError, UsageError) as error:
            code = BAD_USAGE if isinstance(error, _BAD_VALUES) else FAILED
            code = _fail(type(error).__name__, str(error), code, as_json)
        except typer.Exit as end:
            code = end.exit_code
        except KeyboardInterrupt:
            code = _fail("KeyboardInterrupt", INTERRUPTION, INTERRUPTED, as_json)
        except ModuleNotFoundError as error:
            missing = not_installed("this", error)
            code = _fail(type(missing).__name__, str(missing), FAILED, as_json)
        except BrokenPipeError:
            _drop_output()
            code = FAILED
        except MemoryError as error:
            code = _fail("MemoryError", f"there is not enough memory: {error}", FAILED, as_json)
        except OSError as error:
            what, line = error.filename, error.strerror or str(error)
            if what is None and error.errno in _NO_ROOM:  # errors of files have a file name
                _drop_output()
                what, as_json = "standard output", False
            line = line if what is None else f"{what} cannot be used: {line}"
            code = _fail(type(error).__name__, line, FAILED, as_json)
        except Exception as error:
            message = getattr(error, "format_message", None)
            if message is None:
                raise
            code = _fail("UsageError", _explain(error, message()), BAD_USAGE, as_json)
        sys.exit(code if isinstance(code, int) else 0)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb; refuse what was removed, and an option of one value given twice."""
        verb = f"{ctx.command_path} {args[0]}"
        for given in (verb, *(f"{verb} {word.partition('=')[0]}" for word in args[1:])):
            if gone := removed(given):
                raise UsageError(gone)
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not hasattr(command, "commands"):
            _check_once(command, ctx, rest)
        return name, command, rest


def parse_with(parse: Callable[[str], Any], flag: str, text: str) -> Any:
    """Parse a flag's value.

    Parameters
    ----------
    parse
        Raises ValueError, with a message that says what is accepted.
    flag, text
        The flag and its value.

    Raises
    ------
    UsageError
        If the value is malformed.
    """
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{flag} {text!r} {error}") from error


def print_json(document: Any) -> None:
    """Print the one document of a verb with ``--json``."""
    print(json.dumps(document, indent=2, default=_plain))


@contextlib.contextmanager
def progress(what: str, *, lines: bool = False) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr while work runs, if that is a terminal.

    Parameters
    ----------
    what
        The work.
    lines
        Whether each step is a line if stderr is no terminal, for work that takes minutes.

    Yields
    ------
    callable
        Takes the number of finished steps, the number of all steps, and the name of the next step
        if it has one.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        said = -1

        def write(done: int, total: int, _name: str = "") -> None:
            nonlocal said
            if lines and done != said:
                said = done
                print(f"{what}: {done} of {total} steps", file=sys.stderr, flush=True)

        yield write
        return
    from rich.console import Console  # noqa: PLC0415 - rich is slow to import
    from rich.progress import MofNCompleteColumn, Progress  # noqa: PLC0415

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def step(done: int, total: int, name: str = "") -> None:
            described = f"{what} {name}" if name else what
            bar.update(task, completed=done, total=total, description=described)

        yield step


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on stdout, the first column left-aligned and numbers to the right."""
    from rich import box  # noqa: PLC0415 - rich is slow to import
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, header in enumerate(headers):
        numbers = i > 0 and all(row[i].isdigit() for row in rows)
        table.add_column(header, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(printable, row))  # cells may be of strangers
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH  # lines stay whole, so that they can be searched
    with console.capture() as shown:
        console.print(table)
    print(*(line.rstrip() for line in shown.get().splitlines()), sep="\n")


def print_line(text: str) -> None:
    """Print a line that may hold texts of strangers."""
    print(printable(text))


def print_fields(fields: MutableMapping[str, Any], indent: str = "") -> None:
    """Print names and values, one per line, with the values aligned; they may be of strangers."""
    width = max(map(len, fields))
    for name, value in fields.items():
        print(f"{indent}{name:<{width}}  {printable(str(value))}")


def _check_once(command: Any, parent: Any, words: Sequence[str]) -> None:
    """Refuse repeated options, of which click would take the last."""
    context = command.context_class(command, info_name=command.name, parent=parent)
    try:
        _, _, given = command.make_parser(context).parse_args(list(words))
    except Exception:  # which the parser of the verb explains
        return
    for option, times in Counter(given).items():
        if times > 1 and not (option.multiple or getattr(option, "is_flag", True)):
            raise UsageError(
                f"{option.opts[-1]} is given {times} times; expected it once"
                + (", a list such as x86-64-v2,x86-64-v3" if option.name == "target" else "")
            )


def _fail(kind: str, message: str, code: int, as_json: bool) -> int:
    line = printable(" ".join(message.split()))
    if as_json:
        print_json({"error": line, "kind": kind})
    else:
        print(f"te-select: error: {line}", file=sys.stderr)
    return code


def _drop_output() -> None:
    """Drop output that stdout does not take; otherwise the interpreter complains at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error: Any, message: str) -> str:
    """Typer's message, and what would have been accepted."""
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    if not hasattr(error, "option_name") and not hasattr(context.command, "commands"):
        return message
    commands = getattr(context.command, "commands", {})
    if verbs := [name for name, command in commands.items() if not command.hidden]:
        end = " Expected" if message.endswith("?") else "; expected"
        return f"{message.rstrip('.')}{end} one of {', '.join(verbs)}"
    accepted = [name for param in context.command.params for name in param.opts if "-" in name]
    return f"{message.rstrip('.')}; {context.info_name} takes {', '.join(accepted)}"


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} is not JSON")
