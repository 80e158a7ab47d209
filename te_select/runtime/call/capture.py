"""What a program asks for, for tuning: captured if ``TE_SELECT_CAPTURE`` names a file.

Every call is counted. One of some 64 is timed, of the first ones more, of short ones fewer. Of some
of these cond is looked at: how much of it is true, and in how many runs of one value. When the
program ends, what was seen is added to the file, which several processes and runs may share::

    {"kernels": {workload as JSON: {...}}, "where": {name of a kernel of where(): {...}}}

Each has ``calls`` (of kernels) or ``elements`` (of where), estimated ``seconds``, and of the
sampled conds ``conds`` (elements), ``true`` and ``runs``; kernels with names have the least and the
largest of each in ``sizes``.
"""

import atexit
import fcntl
import functools
import json
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from multiprocessing import parent_process, util
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy as np

from te_select.base import atomic, on_disk, variables
from te_select.errors import caught, warn

VARIABLE = "TE_SELECT_CAPTURE"
EVERY = 64  # calls; of shorter ones more, for
SPACING = 1e-4  # seconds from one to the next: a sample takes 3 us, so that it is 3 % of them
FIRST = 16  # timed calls whose cond is looked at, and then one of so many: a look takes 10 us
LOOKED_AT = 1 << 20  # elements of cond
Seen = dict[str, Any]
_NONE = {"calls": 0, "sampled": 0, "spent": 0.0, "conds": 0, "true": 0, "runs": 0}
_kernels: dict[str, Seen] = {}
_where: dict[str, Seen] = {}
_finishers: list[Callable[[], None]] = []  # run before the file is written
_written: set[int] = set()  # processes
_intervals = random.Random(0)  # programs have periods


def is_on() -> bool:
    """Whether anything is captured."""
    return bool(variables.CAPTURE)


def sampled(kernel: Any, cond: Any, then: Any, else_: Any, out: Any) -> Any:
    """Time a call of a kernel, and decide how many calls, with its own, are not."""
    seen = kernel.seen or _begun(kernel)
    apart = max(EVERY, int(SPACING * seen["sampled"] / max(seen["spent"], 1e-9)))
    interval = 1 + int(_intervals.random() * (2 * min(apart, seen["looks"] + 1) - 1))
    kernel.unsampled = iter(range(interval))
    # Those of other kernels of the workload are kept until they have run out.
    seen["unsampled"] = [*filter(length_hint, seen["unsampled"]), kernel.unsampled]
    seen["calls"] += interval
    begin = time.perf_counter()
    result = kernel(cond, then, else_, out)
    _note(seen, time.perf_counter() - begin, cond, 1)
    for dim, (operand, axis) in seen["places"].items():
        size = np.shape((cond, then, else_)[operand])[axis]
        least, most = seen["sizes"].get(dim, (size, size))
        seen["sizes"][dim] = [min(least, size), max(most, size)]
    return result


def of_where(
    where: Any, extension: Any, names: Callable[[], Sequence[str]], fetching: Callable[[], float]
) -> None:
    """Sample the calls of `te_select.where`, by the extension.

    ``names`` are by number; ``fetching`` tells the seconds in which this thread's calls have waited
    for kernels, which are not those of a call.
    """
    of_number: dict[int, Seen] = defaultdict(lambda: {**_NONE, "looks": 0})
    of_parent = np.zeros(1, np.int64)

    def sample(*args: Any, **options: Any) -> Any:
        extension.last()
        begin = time.perf_counter() - fetching()
        result = where(*args, **options)
        seconds = time.perf_counter() - fetching() - begin
        number, elements = extension.last()
        if elements:  # else NumPy was asked
            _note(of_number[number], seconds, args[0], elements)
        return result

    def finish() -> None:
        every = np.frombuffer(extension.counts()[-1], np.int64) - of_parent
        for number in map(int, np.flatnonzero(every)):
            _where[names()[number]] = of_number[number] | {"elements": int(every[number])}

    def forget() -> None:
        nonlocal of_parent
        of_parent = np.frombuffer(extension.counts()[-1], np.int64)
        of_number.clear()

    extension.sample_by(sample)
    _at_exit()
    os.register_at_fork(after_in_child=forget)
    _finishers.append(finish)


def _begun(kernel: Any) -> Seen:
    workload = kernel.workload
    key = json.dumps(workload.to_json(), sort_keys=True)
    new: Seen = {**_NONE, "looks": 0, "unsampled": [], "sizes": {}, "places": workload.places}
    seen = _kernels.setdefault(key, new)
    kernel.seen = seen
    _at_exit()
    return seen


def _forget() -> None:
    """In a forked child: what was seen before the fork is its parent's to write."""
    for seen in _kernels.values():
        seen.update(_NONE, calls=sum(map(length_hint, seen["unsampled"])))


def _note(seen: Seen, seconds: float, cond: Any, units: int) -> None:
    """Add a sample, which took ``seconds`` for so many calls or elements."""
    seen["looks"] += 1
    if seen["looks"] == 2:  # noqa: PLR2004 - the first call loads, or even builds, and counts alone
        seen |= {"sampled": 0, "spent": 0.0}
    seen["sampled"] += units
    seen["spent"] += seconds
    if seen["looks"] > FIRST and seen["looks"] % FIRST:
        return
    try:
        array = np.asarray(cond) if hasattr(cond, "__array__") else np.from_dlpack(cond)
        flat = array.reshape(-1)[:LOOKED_AT] != 0
    except caught(Exception):  # of another device, or of a library of its own
        return
    seen["conds"] += flat.size
    seen["true"] += int(flat.sum())
    seen["runs"] += int(np.count_nonzero(flat[1:] != flat[:-1])) + bool(flat.size)


@functools.cache
def _at_exit() -> None:
    os.register_at_fork(after_in_child=_forget)
    atexit.register(_write)
    util.register_after_fork(_write, _at_end_of_worker)
    if parent_process():
        _at_end_of_worker()


def _at_end_of_worker(_: Any = None) -> None:
    """A forked worker of multiprocessing runs its finalizers, and nothing of `atexit`."""
    util.Finalize(None, _write, exitpriority=0)


def _write() -> None:
    """Add what was seen to the file, once; a program that ends is only warned."""
    path = Path(variables.CAPTURE or "")
    if os.getpid() in _written:
        return
    _written.add(os.getpid())
    try:
        for finish in _finishers:
            finish()
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            text = b"" if on_disk.is_missing(path) else on_disk.read(path, "what others wrote")
            whole = json.loads(text) if text else {"kernels": {}, "where": {}}
            _add(whole)
            atomic.replace(path, json.dumps(whole, indent=1).encode())
        finally:
            os.close(folder)
    except caught(Exception) as error:  # of the system, or of a file of another form
        warn(f"{VARIABLE} is {str(path)!r}, to which nothing could be added: {error!r}")


def _add(whole: dict[str, Any]) -> None:
    """Add what was seen to what the file says."""
    for name, own, units in (("kernels", _kernels, "calls"), ("where", _where, "elements")):
        for key, seen in own.items():
            seen[units] -= sum(map(length_hint, seen.pop("unsampled", ())))
            told = whole[name].setdefault(key, {"sizes": {}})
            new = {each: seen[each] for each in (units, "conds", "true", "runs")}
            new["seconds"] = seen["spent"] * seen[units] / max(seen["sampled"], 1)
            told |= {each: told.get(each, 0) + value for each, value in new.items()}
            for dim, (least, most) in seen.get("sizes", {}).items():
                before = told["sizes"].get(dim, (least, most))
                told["sizes"][dim] = [min(least, before[0]), max(most, before[1])]
