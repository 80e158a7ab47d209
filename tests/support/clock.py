"""A clock that only calls move, instead of the module ``time``."""

from collections.abc import Callable


class Clock:
    """Seconds since it was made, and the calls so far."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def perf_counter(self) -> float:
        """As `time.perf_counter`."""
        return self.now

    def monotonic(self) -> float:
        """As `time.monotonic`."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """As `time.sleep`."""
        self.now += seconds

    def call(self, name: str, milliseconds: float) -> Callable[[], None]:
        """A call that takes so long."""

        def run() -> None:
            self.calls.append(name)
            self.now += milliseconds / 1e3

        return run
