"""Workloads that many tests use."""

from re import findall

from te_select import Workload


def shapes(text):
    """The shapes that a text lists, such as ``n,1 n,4 ()``."""
    every = (findall(r"\w+", shape) for shape in text.split())
    return tuple(tuple(int(d) if d.isdigit() else d for d in dims) for dims in every)


def alike(*shape, dtype="float32"):
    """Everything has this shape."""
    return Workload(shape, shape, shape, dtype)


def flat(n, dtype="float32"):
    """One loop along which everything moves."""
    return alike(n, dtype=dtype)


def flat_and_scalar(n, dtype="float32"):
    """One loop along which cond and then move; else is one value."""
    return Workload((n,), (n,), (), dtype)


def masked_rows(count, length, dtype="float32"):
    """Rows of then, each selected by one cond; else is one value."""
    return Workload((count, 1), (count, length), (), dtype)
