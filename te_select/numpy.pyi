"""NumPy's types; where and select take out as well."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, overload

from numpy import intp
from numpy.typing import ArrayLike, NDArray

from te_select import ma as ma
from te_select.selecting import Where

_Array = TypeVar("_Array", bound=NDArray[Any])

class _Where(Where, Protocol):
    @overload  # type: ignore[override] # te_select.where takes tensors as well
    def __call__(self, condition: ArrayLike, /) -> tuple[NDArray[intp], ...]: ...
    @overload
    def __call__(
        self, condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, out: None = None
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self, condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, out: _Array
    ) -> _Array: ...

where: _Where

@overload
def select(
    condlist: ArrayLike, choicelist: Sequence[_Array], default: ArrayLike = 0, *, out: None = None
) -> _Array: ...
@overload
def select(
    condlist: ArrayLike, choicelist: ArrayLike, default: ArrayLike = 0, *, out: None = None
) -> NDArray[Any]: ...
@overload
def select(
    condlist: ArrayLike, choicelist: ArrayLike, default: ArrayLike = 0, *, out: _Array
) -> _Array: ...

# Of two definitions, mypy takes the first.
from numpy import *  # type: ignore[assignment,no-redef] # noqa: E402, F403
from numpy import __array_api_version__ as __array_api_version__  # noqa: E402
from numpy import __version__ as __version__  # noqa: E402
