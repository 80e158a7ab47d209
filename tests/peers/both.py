"""Calls that are made by NumPy and by te-select, compared, and repeated with larger operands."""

import functools
import os
import threading
from collections import Counter

import numpy as np

from te_select import where
from te_select.selecting.tensor_libraries import has_own_rule
from tests.support.where_calls import difference, outcome

# With these a call of so many elements runs on several threads, and stores past the cache.
PROFILE = (
    "bytes_per_thread=4096,stream_per_thread=1,stream_per_l3=1,fill_per_thread=1,fill_per_l3=1"
)
ELEMENTS = 20_000
REPEATS = 8  # of calls with operands of the same types and layouts
TOLD = 100  # differences of a process
_WRITTEN = ("dst", "a")  # what copyto and putmask call the array that they write
_restore = np.copyto


class Both:
    """Functions that compare, with what they have found."""

    def __init__(self):
        self.counts = Counter()
        self.differences = []
        self._seen = Counter()
        self._lock = threading.RLock()  # warnings are caught for the whole process

    def function(self, numpy_s, ours):
        """A function that is NumPy's and ours; its result is ours."""

        @functools.wraps(numpy_s)
        def both(*given, **named):
            with self._lock:
                self._compare(numpy_s, ours, given, named)
            return ours(*given, **named)

        return both

    def _compare(self, numpy_s, ours, given, named):
        """Compare a call, and one with larger operands if it is of a new kind."""
        arguments = [*_leaves(given), *named.values()]
        if any(has_own_rule(each) for each in arguments):
            self.counts["of other libraries"] += 1
            return
        self._one(numpy_s, ours, given, named)
        key = (numpy_s.__name__, *map(_kind, arguments))
        self._seen[key] += 1
        if self._seen[key] <= REPEATS and (larger := _enlarged(given, named)):
            self._one(numpy_s, ours, *larger)
            self.counts["enlarged"] += 1
            if numpy_s.__name__ == "where":
                self._explain(*larger[0])

    def _one(self, numpy_s, ours, given, named):
        theirs = _outcome(numpy_s, given, named)
        found = _outcome(ours, given, named)
        self.counts["compared"] += 1
        for own, other in zip(found, theirs, strict=True):
            if (problem := _difference(own, other)) and len(self.differences) < TOLD:
                kinds = ", ".join(map(str, map(_kind, [*_leaves(given), *named.values()])))
                test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
                self.differences.append(f"{test}: {numpy_s.__name__}({kinds}): {problem}")

    def _explain(self, *given):
        explanation = where.explain(*given)
        self.counts["on threads"] += explanation.threads > 1
        self.counts["past the cache"] += explanation.past_cache


def _leaves(values):
    """Arguments, and those in lists of arrays, which select takes."""
    for value in values:
        if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
            yield from value
        else:
            yield value


def _kind(value):
    """What calls that are alike have in common."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    ones = tuple(extent == 1 for extent in value.shape)
    flags = value.flags
    return type(value).__name__, value.dtype.str, ones, flags.c_contiguous, flags.f_contiguous


def _outcome(function, given, named):
    """What a call comes to, and the array that it has written, which gets back what it had."""
    names = [name for name in _WRITTEN if name in named]
    target = named[names[0]] if names else given[0] if given else None
    writes = function.__name__ in ("copyto", "putmask") and isinstance(target, np.ndarray)
    writes = writes and target.dtype.names is None  # copyto leaves what lies between fields
    plain = np.asarray(target).view(np.ndarray) if writes else None
    before = plain.copy("K") if writes else None
    result = outcome(lambda: function(*given, **named), ())
    if not writes:
        return result, None
    after = plain.copy("K")
    if plain.flags.writeable:
        _restore(plain, before, casting="unsafe")
    return result, (after, [])


def _difference(found, expected):
    """In what two outcomes differ, or None."""
    if found is expected is None:
        return None
    ours, warned = found
    theirs, expected_warnings = expected
    if isinstance(theirs, np.ndarray) and isinstance(ours, np.ndarray):
        return difference(found, expected)
    if isinstance(theirs, tuple) and isinstance(ours, tuple):  # of where(cond)
        pairs = zip(ours, theirs, strict=True)
        return next((p for a, b in pairs if (p := difference((a, []), (b, [])))), None)
    if (type(ours), warned) != (type(theirs), expected_warnings):
        return f"{type(ours)} and {warned} instead of {type(theirs)} and {expected_warnings}"
    return f"{ours} instead of {theirs}" if isinstance(ours, type) and ours is not theirs else None


def _enlarged(given, named):
    """The arguments, whose arrays of the highest rank get one axis more; None if they cannot."""
    arrays = [a for a in (*_leaves(given), *named.values()) if isinstance(a, np.ndarray)]
    if not arrays or any(type(a) is not np.ndarray or a.dtype.hasobject for a in arrays):
        return None
    most = max(arrays, key=lambda a: a.size)
    if not most.size or most.ndim > 30 or most.size > ELEMENTS:
        return None
    rank = max(a.ndim for a in arrays)
    copies = -(-ELEMENTS // most.size)

    def larger(value):
        if isinstance(value, np.ndarray):
            return np.concatenate([value[None]] * copies) if value.ndim == rank else value
        if isinstance(value, (list, tuple)):
            return type(value)(map(larger, value))
        return value

    return tuple(map(larger, given)), {name: larger(value) for name, value in named.items()}
