"""Opens the measurer that a runner's name stands for."""

import re

from te_select import kinds
from te_select.errors import TuningError
from te_select.tuning.measuring.measurer import LocalMeasurer, Measurer
from te_select.tuning.options import TIMEOUT

LOCAL = "local"
_RPC = re.compile(r"rpc://(?P<host>\[[0-9a-fA-F:]+\]|[^/:\s]+):(?P<port>\d{1,5})/(?P<key>[^/:\s]+)")
_LARGEST_PORT = 65535


def open_measurer(
    runner: str = LOCAL, jobs: int | None = None, timeout: float = TIMEOUT
) -> Measurer:
    """Open a measurer.

    Parameters
    ----------
    runner
        ``"local"`` for this machine, or ``"rpc://HOST:PORT/KEY"`` for the servers that are
        registered under KEY with the RPC tracker at HOST:PORT.
    jobs
        Candidates to build at once; None for one per CPU that this process may use.
    timeout
        Seconds that a candidate may take to be built, and again to be checked and timed.

    Returns
    -------
    Measurer
        A context manager.

    Raises
    ------
    TuningError
        If the runner is neither, the tracker does not answer, or no server has the key.
    ArgumentError
        If ``jobs`` or ``timeout`` is not positive.
    """
    place = parse_runner(runner)
    if place is None:
        return LocalMeasurer(jobs, timeout)
    from te_select.tuning.fleet.measurer import FleetMeasurer  # noqa: PLC0415 - imports tvm

    return FleetMeasurer(*place, jobs, timeout)


def measure_profile() -> str:
    """Measure the profile of this machine, if it is only reasoned; says what was done, or why not.

    What a kernel's default config is worth depends on it, so it comes before anything is tuned.
    """
    (module,) = (kind.profile for kind in kinds.KINDS.values() if kind.profile)
    return str(kinds.load(module).measure_if_reasoned())


def parse_runner(runner: str) -> tuple[tuple[str, int], str] | None:
    """Read a runner's name.

    Returns
    -------
    tuple or None
        Host and port of a tracker, and the key; None for this machine.

    Raises
    ------
    TuningError
        If it is not the name of a runner.
    """
    if runner == LOCAL:
        return None
    match = _RPC.fullmatch(runner) if isinstance(runner, str) else None
    if match is None or not 0 < int(match["port"]) <= _LARGEST_PORT:
        raise TuningError(
            f"runner {runner!r} is not known; expected local or rpc://HOST:PORT/KEY, KEY being "
            "what the servers are registered under, as in rpc://tracker.example:9190/zen5"
        )
    return (match["host"].strip("[]"), int(match["port"])), match["key"]
