"""A clock that only calls move, instead of the module ``time``."""


class Clock:
    """Seconds since it was made, and the calls so far."""

    def __init__(self):
        self.now = 0.0
        self.calls = []

    def perf_counter(self):
        """As `time.perf_counter`."""
        return self.now

    def monotonic(self):
        """As `time.monotonic`."""
        return self.now

    def sleep(self, seconds):
        """As `time.sleep`."""
        self.now += seconds

    def call(self, name, milliseconds):
        """A call that takes so long."""

        def run():
            self.calls.append(name)
            self.now += milliseconds / 1e3

        return run
