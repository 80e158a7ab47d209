"""``te-select bench``."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option

from te_select.base import interrupts, kinds
from te_select.cli import console, flags, paths
from te_select.cli.entries import SuiteFlags, entries_of
from te_select.cli.flags import of_flag
from te_select.cli.models import ModelFlags
from te_select.cli.workloads import WorkloadsFlags
from te_select.operator.broadcast import printable

if TYPE_CHECKING:
    from te_select.bench.report import Results
    from te_select.bench.row import Row

Density = Annotated[str, Option(help="Percent of cond that is true; a list.")]
Block = Annotated[str, Option(help="Elements of cond drawn together; a list.")]
PeerNames = Annotated[str, Option(help="all, none, or a list: numpy,torch.")]
Rounds = Annotated[int | None, Option(min=1, help="Rounds of each row; default 5 to 15.")]
Cold = Annotated[bool, Option("--cold", help="Evict the operands between calls.")]
Plot = Annotated[Path | None, Option(help="Draw the results: PNG, SVG or PDF.")]


def bench_command(  # noqa: PLR0913, PLR0917 - one per flag
    given: WorkloadsFlags,
    suite: SuiteFlags,
    model: ModelFlags,
    density: Density = "50",
    block: Block = "1",
    peers: PeerNames = "all",
    rounds: Rounds = None,
    target: flags.Target = "native",
    logs: flags.Logs = None,
    cold: Cold = False,
    plot: Plot = None,
    as_json: flags.Json = False,
) -> None:
    """Measure kernels beside other systems and this machine's roof.

    With --target cuda, kernels run on this machine's GPU. Calls then always go through more
    operands than the L2 cache holds. Times are medians. "times" is the other's median over
    te-select's. docs/bench.md has the fields of --json.

    Example: te-select bench --only "attention-*" --peers numpy,torch --plot build/bench.png
    """
    entries = entries_of(given, suite, model)
    paths.check_plot(plot)

    from te_select.backends import builder  # noqa: PLC0415 - kept off --help
    from te_select.backends.targets import resolve  # noqa: PLC0415 - imports tvm
    from te_select.bench import report  # noqa: PLC0415 - imports NumPy
    from te_select.bench.peers import choose_peers, with_plugins  # noqa: PLC0415 - as above
    from te_select.bench.row import OURS, Options, label_of  # noqa: PLC0415 - as above
    from te_select.bench.run import run  # noqa: PLC0415 - as above
    from te_select.cli.env import environment  # noqa: PLC0415 - kept off --help
    from te_select.timing.cores import busy_cores  # noqa: PLC0415 - kept off --help
    from te_select.timing.inputs import Mask  # noqa: PLC0415 - as above

    kind = kinds.kind(resolve(target).kind)
    device = builder(kind.name).device() or target
    drawn = _numbers("--density", density, float, 0, 100), _numbers("--block", block, int, 1)
    masks = [Mask(*each) for each in itertools.product(*drawn)]
    known = with_plugins(kinds.load(kind.peers))
    with of_flag(f"--peers {peers!r}"):
        chosen = choose_peers(peers, known)
    absent = {peer.name: why for peer in chosen if (why := peer.available()) is not None}
    there = [peer for peer in chosen if peer.name not in absent]
    options = Options(target, there, rounds, cold, logs)
    rows: list[Row] = []
    results = report.Results(rows, absent, options, environment(), device, busy_cores(), False)
    names = [label_of(*each) for each in itertools.product(entries, masks)]
    with console.progress("measuring", lines=not as_json) as step:
        try:
            step(0, len(names), names[0])
            for row in run(entries, masks, options):
                rows.append(row)
                step(len(rows), len(names), _line(row))
        except KeyboardInterrupt:
            results = replace(results, interrupted=True)
    if as_json:
        console.show(report.document(results), as_json)
    else:
        print_report(results)
    if plot and rows:
        from te_select.bench.plot import plot as draw  # noqa: PLC0415 - imports matplotlib

        draw(plot, rows, device)
    if results.interrupted:
        raise Exit(interrupts.CODE)
    if any(OURS in name for row in rows for name in row.wrong):
        raise Exit(console.FAILED)


def print_report(results: Results) -> None:
    """Print the table, and notes under it."""
    from te_select.bench import report  # noqa: PLC0415 - imports NumPy

    if results.rows:
        cells = [report.cells(row) for row in results.rows]
        console.print_table(cells, report.FIGURES, report.LESS_IMPORTANT)
    print(*map(printable, report.notes(results)), sep="\n")


def _line(row: Row) -> str:
    """A row's name, and how it stands to the best peer."""
    times = row.times(row.best)
    return row.label if times is None else f"{row.label}: {times:.2f} times {row.best}"


def _numbers(flag: str, text: str, kind: type, least: int, most: float = math.inf) -> list[Any]:
    """The numbers of a list with commas."""
    try:
        numbers = [kind(word) for word in text.split(",")]
    except ValueError:
        numbers = [least - 1]
    if not all(least <= number <= most for number in numbers):
        raise console.UsageError(
            f"{flag} {text!r} is no list of numbers from {least} to {most:g}; expected, for "
            "example, 1,50"
        )
    return numbers
