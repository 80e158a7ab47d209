"""Workloads that many tests use."""

from te_select import Workload


def flat(n, dtype="float32"):
    """One loop along which everything moves."""
    return Workload((n,), (n,), (n,), dtype)


def flat_and_scalar(n, dtype="float32"):
    """One loop along which cond and then move; else is one value."""
    return Workload((n,), (n,), (), dtype)
