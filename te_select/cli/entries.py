"""Where the workloads of a verb come from: flags, a model, or a suite of the bench."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from te_select.cli import models, paths
from te_select.cli.console import UsageError
from te_select.cli.flags import check_known, no_meaning, of_flag
from te_select.cli.workloads import WorkloadsFlags, gather, read_json
from te_select.operator import family
from te_select.operator.broadcast import shown
from te_select.operator.workload import Workload
from te_select.records.fields import UNREADABLE
from te_select.runtime.artifact import stored

if TYPE_CHECKING:
    from te_select.bench.suite import Entry

_CAPTURED = "what a program wrote that ran with TE_SELECT_CAPTURE"


@dataclass
class SuiteFlags:
    """Workloads of a suite."""

    title = "Which workloads"
    suite: Annotated[str | None, Option(help="Of the bench: default or baselines.")] = None
    only: Annotated[str | None, Option(help="A glob over the suite's workloads.")] = None


@dataclass
class OtherFlags:
    """Workloads that something else names: a library, a program that ran, a kernel of where()."""

    title = "Which workloads"
    library: Annotated[Path | None, Option(help="All workloads of a library.")] = None
    captured: Annotated[Path | None, Option(help="A file of TE_SELECT_CAPTURE.")] = None
    where: Annotated[str | None, Option(help='A kernel of where(): "w4 n:cte".')] = None


def entries_of(
    flags: WorkloadsFlags,
    suite: SuiteFlags,
    model: models.ModelFlags,
    other: OtherFlags | None = None,
) -> list[Entry]:
    """The workloads of the one source that is given.

    Parameters
    ----------
    flags, suite, model
        The sources.
    other
        The sources that the bench lacks, which passes none. Then every dim must have a size, and
        the default suite is meant if no source is given.

    Raises
    ------
    UsageError
        If more than one is given, or one is malformed.
    """
    from te_select.bench.suite import SUITES, Entry, choose  # noqa: PLC0415 - kept off --help

    of_suite = suite != SuiteFlags()
    of_bench = other is None
    other = other or OtherFlags()
    library, captured, where = other.library, other.captured, other.where
    others = sum(source is not None for source in (model.model, library, where, captured))
    if bool(flags.given) + of_suite + others > 1:
        last = "and --model" if of_bench else "--model, --where, --captured and --library"
        raise UsageError(
            f"more than one of workload flags, --suite or --only, {last} is given; expected one"
        )
    if of_suite or (of_bench and not flags.given and not model.model):
        no_meaning("beside a suite", size=model.size)
        check_known("--suite", suite.suite, SUITES)
        only = "*" if suite.only is None else suite.only
        with of_flag(f"--only {suite.only!r}"):
            return choose(SUITES[suite.suite or "default"], only)
    if captured:
        return [entry for _, entry in sorted(_captured(captured), key=lambda each: -each[0])]
    if where is not None:
        return [Entry(where, _typical(where), "given", of_where=True)]
    if model.model:
        nodes = models.read_nodes(model.model)
        compiled = {node.workload: node.place for node in reversed(nodes) if node.workload}
        listed = [(place, workload) for workload, place in reversed(compiled.items())]
        dims = {name for node in nodes for name in node.dims}
        if not listed:
            raise UsageError(
                "no Where or Select of the model can be compiled; inspect --model says why"
            )
    else:
        if library:
            kernels = stored.read(paths.check_library(library)).manifest.kernels
            listed = [(kernel.workload.name, kernel.workload) for kernel in kernels]
        else:
            listed = gather(flags)
        dims = {dim for _, workload in listed for dim in workload.dim_names}
    sizes = models.parse_sizes(model.size, dims)
    sized = ((name, *models.at_sizes(each, sizes, name, bind=of_bench)) for name, each in listed)
    return [Entry(name, workload, "given", ranges) for name, workload, ranges in sized]


def _typical(name: str) -> Workload:
    """The workload at which a kernel of `te_select.where` is tuned."""
    known = family.kernels()
    if name not in known:
        raise UsageError(f"--where {name!r} is no kernel; expected one, such as 'w4 n:cte'")
    return family.typical(known[name])


def _captured(path: Path) -> Iterator[tuple[float, Entry]]:
    """What a program asked for, with the seconds that it took and the conds that were seen."""
    from te_select.bench.suite import Entry  # noqa: PLC0415 - kept off --help
    from te_select.timing.inputs import Mask  # noqa: PLC0415 - as above

    whole = read_json("--captured", path, _CAPTURED)
    try:
        for group in ("kernels", "where"):
            for key, seen in whole[group].items():
                of_where = group == "where"
                workload = _typical(key) if of_where else Workload.from_json(json.loads(key))
                share = seen["true"] / seen["conds"] if seen["conds"] else 0.5
                # In blocks of b, of which a share p is true, a value ends after b / 2p(1-p).
                block = 2 * share * (1 - share) * seen["conds"] / max(1, seen["runs"])
                mask = Mask(5.0 * round(20 * share), 1 << round(math.log2(max(1, block))))
                sizes = tuple(
                    (name, max(1, least), max(1, most))  # empty calls are captured, too
                    for name, (least, most) in seen["sizes"].items()
                )
                name = key if of_where else workload.name
                entry = Entry(name, workload, "captured", sizes, mask, of_where)
                yield float(seen["seconds"]), entry
    except UNREADABLE as error:
        raise UsageError(f"--captured {path} holds {shown(whole)}; expected {_CAPTURED}") from error
