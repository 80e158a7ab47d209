"""Where the workloads of a verb come from: flags, a model, or a suite of the bench."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from te_select.cli.console import UsageError, parse_with
from te_select.cli.manifest import read_manifest
from te_select.cli.models import (
    ModelFlags,
    at_sizes,
    names_of,
    no_sizes,
    parse_ranges,
    read_nodes,
    workloads_of,
)
from te_select.cli.paths import check_library
from te_select.cli.workloads import WorkloadsFlags, gather_named, read_json
from te_select.operator import family
from te_select.operator.broadcast import shown
from te_select.operator.workload import Workload

if TYPE_CHECKING:
    from te_select.bench.suite import Entry

_COUNTS = 'JSON of te_select.where.stats().kernels, such as {"w4 n:cte": 1024}'


@dataclass(frozen=True)
class SuiteFlags:
    """The flags of a suite of the bench."""

    suite: Annotated[
        str | None, typer.Option(help="A suite of the bench: default or baselines.")
    ] = None
    only: Annotated[str | None, typer.Option(help="A glob: only these workloads of the suite.")] = (
        None
    )

    def entries(self) -> list[Entry]:
        """The entries of the suite, by default the default one.

        Raises
        ------
        UsageError
            If there is no such suite, or no entry with such a name.
        """
        from te_select.bench.suite import SUITES, choose  # noqa: PLC0415 - kept off --help

        if self.suite not in (None, *SUITES):
            raise UsageError(
                f"--suite {self.suite!r} is not known; expected one of {', '.join(SUITES)}"
            )
        entries = SUITES[self.suite or "default"]
        glob = "*" if self.only is None else self.only
        chosen: list[Entry] = parse_with(lambda text: choose(entries, text), "--only", glob)
        return chosen


def entries_of(
    flags: WorkloadsFlags,
    suite: SuiteFlags,
    model: ModelFlags,
    *,
    of_bench: bool,
    library: Path | None = None,
    where: str | None = None,
) -> list[Entry]:
    """The workloads of the one source that is given.

    Parameters
    ----------
    flags, suite, model, library, where
        The sources.
    of_bench
        Whether every dim must have a size, and the default suite is measured if none is given.

    Raises
    ------
    UsageError
        If more than one is given, or one is malformed.
    """
    from te_select.bench.suite import Entry  # noqa: PLC0415 - kept off --help

    of_suite = suite != SuiteFlags()
    others = sum(source is not None for source in (model.model, library, where))
    if bool(flags.given) + of_suite + others > 1:
        last = "and --model" if of_bench else "--model, --where and --library"
        raise UsageError(
            f"more than one of workload flags, --suite or --only, {last} is given; expected one"
        )
    if model.model is not None:
        nodes = read_nodes(model.model, expand=model.expand)
        ranges = parse_ranges(model.size, names_of(nodes))
        found = workloads_of(nodes, ranges, bind=of_bench)
        return [Entry(place, workload, "given", own) for place, workload, own in found]
    if of_bench or of_suite or model.expand:
        no_sizes(model.size, model.expand)
    if of_suite or (of_bench and not flags.given):
        return suite.entries()
    if where is not None:
        listed = _of_family(where)
    else:
        listed = gather_named(flags.given) if library is None else _kernels(library)
    ranges = parse_ranges(model.size, {dim for _, each in listed for dim in each.dim_names})
    sized = ((name, *at_sizes(each, ranges, name, bind=False)) for name, each in listed)
    return [Entry(name, workload, "given", own) for name, workload, own in sized]


def _kernels(library: Path) -> list[tuple[str, Workload]]:
    kernels = read_manifest(check_library(library))["kernels"]
    return [(kernel["symbol"], Workload.from_json(kernel["workload"])) for kernel in kernels]


def _of_family(given: str) -> list[tuple[str, Workload]]:
    """The kernels of `te_select.where` that a file counts, most elements first; or one by name."""
    known = family.kernels()
    counts = {given: 1} if given in known else read_json("--where", Path(given), _COUNTS)
    odd = counts
    if isinstance(counts, dict) and counts:
        odd = {key: n for key, n in counts.items() if key not in known or type(n) is not int}
    if odd or not counts:
        raise UsageError(f"--where {given} holds {shown(odd)}; expected {_COUNTS}")
    names = sorted(counts, key=counts.__getitem__, reverse=True)
    return [(name, family.typical(known[name])) for name in names]
