"""numpy.ma's types."""

from typing import Any

from numpy.typing import ArrayLike

def where(condition: ArrayLike, x: ArrayLike = ..., y: ArrayLike = ...) -> Any: ...

from numpy.ma import *  # noqa: E402, F403
