"""`te_select.lazy`: conditions that `te_select.where` computes on the way.

`runtime/c/extension/deferring.c` has what is deferred. Here is the rest: all else is NumPy's.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from te_select.runtime.call.extension import extension

# In the order of condition.h.
_DEFERRED = (
    *(np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal),
    *(np.isnan, np.isfinite, np.logical_and, np.logical_or, np.logical_not),
    *(np.bitwise_and, np.bitwise_or, np.invert),
)


class _Deferred(NDArrayOperatorsMixin):
    """What stands for an array, which is NumPy's operand wherever nothing is deferred."""

    __slots__ = ()
    _plain: Any

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._plain(), dtype, copy=copy)

    def __getattr__(self, name: str) -> Any:
        """An attribute of the array, but none by which libraries would take this for one."""
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._plain(), name)

    def __getitem__(self, key: Any) -> Any:
        return self._plain()[_all_plain(key)]

    def __len__(self) -> int:
        return len(self._plain())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._plain())

    def __contains__(self, value: Any) -> bool:
        return value in self._plain()

    def __bool__(self) -> bool:
        return bool(self._plain())

    def __int__(self) -> int:
        return int(self._plain())

    def __float__(self) -> float:
        return float(self._plain())

    def __complex__(self) -> complex:
        return complex(self._plain())

    def __index__(self) -> int:
        return self._plain().__index__()  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return str(self._plain())

    def __format__(self, how: str) -> str:
        return format(self._plain(), how)

    def __repr__(self) -> str:
        return f"te_select.{type(self).__name__}({self._plain()!r})"


def _compute_now(ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """Call a ufunc with arrays in the place of what stands for them."""
    if any(isinstance(each, Condition) for each in options.get("out", ())):
        raise TypeError("out is a Condition, which is never written; expected an array")
    given = {name: _all_plain(value) for name, value in options.items()}
    return getattr(ufunc, method)(*_all_plain(inputs), **given)


def _all_plain(value: Any) -> Any:
    """A value, or the values of a tuple, with arrays in the place of what stands for them."""
    if type(value) is tuple:
        return tuple(map(_all_plain, value))
    return value._plain() if isinstance(value, _Deferred) else value


class Lazy(extension.Lazy, _Deferred):  # type: ignore[misc]
    """An array whose comparisons with others are Conditions."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        self._plain()[_all_plain(key)] = _all_plain(value)

    def __reduce__(self) -> Any:
        return lazy, (self._plain(),)


class Condition(extension.Condition, _Deferred):  # type: ignore[misc]
    """Booleans that are computed when they are used, each time anew."""

    __slots__ = ()
    dtype = np.dtype(bool)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __reduce__(self) -> Any:
        return np.asarray, (self._plain(),)


extension.take_types(Lazy, Condition, _DEFERRED, _compute_now)


def lazy(a: Any) -> Any:
    """Defer the comparisons of an array, so that `te_select.where` computes them on the way.

    ``<``, ``<=``, ``>``, ``>=``, ``==``, ``!=``, ``numpy.isnan`` and ``numpy.isfinite`` of what is
    returned are Conditions, which ``&``, ``|`` and ``~`` combine. `te_select.where`, `select`,
    `copyto` and `putmask` compute them block by block. All else is NumPy's, at once.

    A Condition refers to the arrays: what changes them before it is used changes its booleans.

    Parameters
    ----------
    a
        An array. Any other value is returned as it is.

    Returns
    -------
    Lazy
        What stands for the array: ``numpy.asarray`` of it is the array itself.

    Examples
    --------
    >>> x = te_select.lazy(a)
    >>> te_select.where((0 <= x) & (x < 1), a, 0)

    Notes
    -----
    "NEP 13", for ufuncs. NumPy computes at once what kernels do not compare, and what it may warn
    of: two element types, dates, texts, numbers that the type of the array does not hold.
    """
    return extension.lazy(a)


lazy.__module__ = "te_select"
