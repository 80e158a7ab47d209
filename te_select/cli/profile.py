"""``te-select profile``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from te_select.base import kinds
from te_select.cli.console import progress, show
from te_select.cli.flags import Json
from te_select.errors import SelectError

DryRun = Annotated[bool, Option("--dry-run", help="Measure, but write no file.")]
Force = Annotated[bool, Option("--force", help="Measure beside busy programs, too.")]
Rounds = Annotated[
    int, Option(min=2, max=1000, help="Turns of each way; more, if thresholds are unsure.")
]


def profile_command(
    dry_run: DryRun = False, force: Force = False, rounds: Rounds = 9, as_json: Json = False
) -> None:
    """Measure this machine's profile, and keep it in a file.

    Libraries decide by the profile when stores go past the cache, when another thread pays, and
    whether to look at cond first. The built-in profile of an unknown machine is only reasoned.
    Measuring takes 8 seconds. Libraries read the file at their first use. TE_SELECT_PROFILE
    overrides it, and te-select env shows what is in effect. Remove the file to go back to the
    built-in profile.

    Thresholds are measured twice, and once more if the two differ, because neighbours of a virtual
    machine use its cache. If all differ, the ones in effect stay, and more --rounds may tell.

    Example: te-select profile --dry-run
    """
    from te_select.records.doubt import are_busy  # noqa: PLC0415 - kept off --help
    from te_select.timing.cores import busy_cores  # noqa: PLC0415 - as above

    profile = kinds.profiler()
    current = profile.profile_here()
    if current.is_refused:
        raise SelectError(f"{current.problem}; unset it to measure")
    if not current.file and not dry_run:
        raise SelectError(
            "there is no folder for the user's configuration; expected HOME or XDG_CONFIG_HOME to "
            "be an absolute path, or --dry-run"
        )
    if not dry_run:
        Path(current.file).parent.mkdir(parents=True, exist_ok=True)
    busy = busy_cores()
    if are_busy(busy) and not force:
        raise SelectError(
            f"other programs use {busy:.1f} cores, so that times would not be this machine's; "
            "expected idle cores, or --force"
        )
    with progress("measuring") as step:
        measured = profile.measure(current, step, rounds)
    if not dry_run:
        profile.keep(measured, current, busy)
    document: dict[str, Any] = {
        "file": None if dry_run else current.file,
        "busy_cores": round(busy, 2),
        "machine": current.machine,
        "origin": current.origin,
        "before": current.decisions,
        "measured": measured.decisions,
        "unsure": measured.unsure,
        "rounds": rounds,
        "comparisons": [asdict(each) for each in measured.comparisons],
        "notes": [
            "ratio: the speed-up by that choice; threads 0: all",
            *(f"{doubt}; try --rounds {2 * rounds}" for doubt in measured.doubts),
            f"for other machines like this one: TE_SELECT_PROFILE={','.join(measured.pairs)}",
        ],
    }
    if are_busy(busy):
        document["notes"].append(
            f"other programs used {busy:.1f} cores meanwhile, so that these values may be wrong"
        )
    show(document, as_json)
