"""Chooses workloads from the suites of the bench, for the verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from te_select.cli.console import UsageError, parse_with

if TYPE_CHECKING:
    from te_select.bench.suite import Entry


def suite(name: str | None, only: str | None) -> list[Entry]:
    """The entries of a suite.

    Parameters
    ----------
    name
        The value of ``--suite``; None for the default suite.
    only
        The value of ``--only``, a glob; None for all entries.

    Raises
    ------
    UsageError
        If there is no such suite, or no entry with such a name.
    """
    from te_select.bench.suite import SUITES, choose  # noqa: PLC0415 - kept off --help

    if name not in (None, *SUITES):
        raise UsageError(f"--suite {name!r} is not known; expected one of {', '.join(SUITES)}")
    entries = SUITES[name or "default"]
    glob = "*" if only is None else only
    chosen: list[Entry] = parse_with(lambda text: choose(entries, text), "--only", glob)
    return chosen
