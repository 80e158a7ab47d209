from collections.abc import Callable
from typing import Any

def make(
    leave: Callable[..., Any],
    fetch: Callable[[int], bool],
    fetch_rows: Callable[[int], bool],
    by_type: dict[type, Callable[..., Any]],
) -> Any: ...
def install(address: int) -> None: ...
def counts() -> tuple[int, int, int, dict[str, int]]: ...
