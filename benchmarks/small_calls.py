"""Calls of some 1,000 elements that ``where.py`` times."""

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

import te_select
from calls_of_where import HALF, into, show, where

ELEMENTS = 1000


def kernels(_options: Any) -> None:
    """Time calls of 1,024 floats: by te_select.where, and by a kernel."""
    rng = np.random.default_rng(0)
    x = rng.random(1024, np.float32)
    mask = rng.random((1, 1, 16, 16)) < HALF
    heads = x.reshape(1, 4, 16, 16)
    kernel = te_select.compile(te_select.Workload((1024,), (1024,), (1024,)))
    for name, given in (
        ("same shapes", (x < HALF, x, x)),
        ("mask, scalar", (x < HALF, x, 0.0)),
        ("broadcast mask", (mask, heads, heads)),
    ):
        out = np.where(*given)
        contestants: dict[str, Callable[[], Any]] = {
            "numpy": partial(np.where, *given),
            "fresh": partial(where, *given),
            "out=": into(where, given, out),
        }
        if name == "same shapes":
            contestants["kernel"] = partial(cast("Any", kernel), *given, out)
        show(name, contestants)


def left(_options: Any) -> None:
    """Compare calls that NumPy does, or that replace elements, with NumPy's own functions."""
    rng = np.random.default_rng(0)
    mask = rng.random(ELEMENTS) < HALF
    ints = mask.astype(np.int64)
    f8, f4, i2 = (rng.integers(0, 100, ELEMENTS).astype(each) for each in ("f8", "f4", "i2"))
    days, seconds = (f8.astype(f"M8[{unit}]") for unit in "Ds")
    one_day = np.datetime64("2026-01-01")
    texts, objects = f8.astype("U"), f8.astype(object)
    cases: dict[str, tuple[str, tuple[Any, ...]]] = {
        "where(cond)": ("where", (mask,)),
        "where(ints)": ("where", (ints,)),
        "dates of two units": ("where", (mask, days, seconds)),
        "dates, one of another unit": ("where", (mask, seconds, one_day)),
        "dates, one that is cut": ("where", (mask, days, np.datetime64("2026-01-01T12"))),
        "objects": ("where", (mask, objects, f8)),
        "texts": ("where", (mask, texts, "none")),
        "lists": ("where", (mask.tolist(), f8.tolist(), 0.0)),
        "copyto": ("copyto", (f8, 1.0, "same_kind", mask)),
        "copyto, array": ("copyto", (f8, f8[::-1].copy(), "same_kind", mask)),
        "copyto, no mask": ("copyto", (f8, f8[::-1].copy())),
        "copyto, int16 to float64": ("copyto", (f8, i2, "same_kind", mask)),
        "copyto, float64 to float32": ("copyto", (f4, f8, "same_kind", mask)),
        "copyto, float32 to float64": ("copyto", (f8, f4, "same_kind", mask)),
        "putmask": ("putmask", (f8, mask, 1.0)),
        "putmask, array": ("putmask", (f8, mask, f8[::-1].copy())),
        "putmask, 4 values": ("putmask", (f8, mask, f8[:4].copy())),
        "putmask, mask of ints": ("putmask", (f8, ints, 1.0)),
        "putmask, int16 to float64": ("putmask", (f8, mask, i2)),
        "putmask, dates": ("putmask", (seconds, mask, one_day)),
    }
    for package in ("pandas", "polars"):
        if importlib.util.find_spec(package):
            series = importlib.import_module(package).Series
            cases[f"{package}.Series"] = ("where", (series(mask), series(f8), 0.0))
    for name, (function, given) in cases.items():
        calls = {
            each.__name__: partial(getattr(each, function), *given) for each in (np, te_select)
        }
        show(name, calls)
