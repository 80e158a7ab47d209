"""``te-select bench``."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from te_select import kinds
from te_select.cli import INTERRUPTED, console, paths
from te_select.cli.flags import with_groups
from te_select.cli.models import ModelFlags
from te_select.cli.sources import SuiteFlags, entries_of
from te_select.cli.workloads import WorkloadsFlags
from te_select.errors import ArgumentError, ArtifactError

if TYPE_CHECKING:
    from te_select.bench.row import Row

Density = Annotated[str, typer.Option(help="Percent of cond that is true; a list.")]
Block = Annotated[str, typer.Option(help="Elements of cond drawn together; a list.")]
PeerNames = Annotated[str, typer.Option(help="all, none, or a list: numpy,torch.")]
Rounds = Annotated[int | None, typer.Option(min=1, help="Rounds of each row; default 5 to 15.")]
Named = Annotated[bool, typer.Option("--named", help="Measure with every dim named as well.")]
Cold = Annotated[bool, typer.Option("--cold", help="Evict the operands between calls.")]
Csv = Annotated[
    Path | None, typer.Option(help="Write one line per row and contestant, row by row.")
]
Plot = Annotated[Path | None, typer.Option(help="Draw the results: PNG, SVG or PDF.")]


@with_groups
def bench_command(  # noqa: PLR0913, PLR0917 - one per flag
    flags: WorkloadsFlags,
    suite: SuiteFlags,
    model: ModelFlags,
    density: Density = "50",
    block: Block = "1",
    peers: PeerNames = "all",
    rounds: Rounds = None,
    target: console.TargetOption = "native",
    logs: console.LogsOption = None,
    named: Named = False,
    cold: Cold = False,
    csv: Csv = None,
    plot: Plot = None,
    as_json: console.JsonFlag = False,
) -> None:
    """Measure kernels beside other systems and this machine's roof.

    With --target cuda, kernels run on this machine's GPU. Calls then always go through more
    operands than the L2 cache holds. Times are medians. "times" is the other's median over
    te-select's. docs/bench.md has the fields of --json.

    Example: te-select bench --only "attention-*" --peers numpy,torch --plot build/bench.png
    """
    entries = entries_of(flags, suite, model, of_bench=True)
    if sizeless := {name: None for entry in entries for name in entry.workload.dim_names}:
        raise ArgumentError(
            f"the dims {', '.join(sizeless)} have no size; give sizes, and --named to measure with "
            "names in their place"
        )
    drawn = (
        console.parse_with(_densities, "--density", density),
        console.parse_with(_blocks, "--block", block),
    )
    paths.check_results("--csv", csv, ())
    paths.check_folder("--tuning-logs", logs, "none")
    paths.check_plot(plot)

    from te_select.backends import machine  # noqa: PLC0415
    from te_select.backends.targets import resolve  # noqa: PLC0415 - imports tvm
    from te_select.bench import report  # noqa: PLC0415 - imports NumPy
    from te_select.bench.options import Options  # noqa: PLC0415 - imports tvm_ffi
    from te_select.bench.peers import choose_peers, with_plugins  # noqa: PLC0415 - as above
    from te_select.bench.row import OURS, label_of  # noqa: PLC0415 - as above
    from te_select.bench.run import run  # noqa: PLC0415 - as above
    from te_select.cli.environment import environment  # noqa: PLC0415 - kept off --help
    from te_select.timing.cores import busy_cores  # noqa: PLC0415 - kept off --help
    from te_select.timing.operands import Mask  # noqa: PLC0415

    kind = kinds.kind(resolve(target).kind)
    device = machine(kind.name).device() or target
    known = with_plugins(kinds.load(kind.peers))
    chosen = console.parse_with(lambda names: choose_peers(names, known), "--peers", peers)
    absent = {peer.name: why for peer in chosen if (why := peer.available()) is not None}
    there = [peer for peer in chosen if peer.name not in absent]
    options = Options(target, there, rounds, named, cold, console.tuning_logs(logs))
    masks = [Mask(*each) for each in itertools.product(*drawn)]
    begun = report.Results([], absent, options, environment(), device, busy_cores(), True)

    def keep(rows: list[Row]) -> None:  # after a kill, the file holds what was measured
        if csv is not None:
            with contextlib.suppress(ArtifactError):  # the last write raises it, after the report
                report.write_csv(csv, replace(begun, rows=rows))

    names = [label_of(*each) for each in itertools.product(entries, masks)]
    rows, interrupted = _collect(run(entries, masks, options), names, keep, quiet=as_json)
    results = replace(begun, rows=rows, interrupted=interrupted)
    if as_json:
        console.print_json(report.document(results))
    else:
        report.print_report(results)
    if csv is not None:
        report.write_csv(csv, results)
    if plot is not None and rows:
        from te_select.bench.plot import plot as draw  # noqa: PLC0415 - imports matplotlib

        draw(plot, rows, results.device)
    if not as_json:
        for path in (csv, plot if rows else None):
            if path is not None:
                print(f"written: {path}")
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if any(OURS in name for row in rows for name in row.wrong):
        raise typer.Exit(console.FAILED)


def _collect(
    measured: Iterable[Row], names: Sequence[str], keep: Callable[[list[Row]], None], *, quiet: bool
) -> tuple[list[Row], bool]:
    """The rows, and whether they were interrupted; ``keep`` gets all rows so far, after each.

    A terminal shows a bar with the name of the row. Elsewhere a row is a line, unless ``quiet``.
    """
    rows: list[Row] = []
    with console.progress("measuring") as step:
        try:
            step(0, len(names), names[0])
            for row in measured:
                rows.append(row)
                step(len(rows), len(names), *names[len(rows) : len(rows) + 1])
                if not quiet and not sys.stderr.isatty():
                    print(f"{len(rows)}/{len(names)} {_line(row)}", file=sys.stderr, flush=True)
                keep(rows)
        except KeyboardInterrupt:
            return rows, True
    return rows, False


def _line(row: Row) -> str:
    """A row's name, and how it stands to the best peer."""
    from te_select.bench.report import label  # noqa: PLC0415 - imports NumPy

    times = None if row.best is None else row.times(row.best)
    return label(row) if times is None else f"{label(row)}: {times:.2f} times {row.best}"


def _densities(text: str) -> list[float]:
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = [-1]
    if not all(0 <= value <= 100 for value in values):  # noqa: PLR2004 - percent
        raise ValueError("is no list of percents from 0 to 100; expected, for example, 0,50,100")
    return values


def _blocks(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.strip().isdecimal() and int(word) > 0 for word in words):
        raise ValueError("is no list of lengths; expected, for example, 1,64,4096,65536")
    return [int(word) for word in words]
