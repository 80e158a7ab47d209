"""The variables of the environment that te-select reads, and a warning about misspelt ones."""

import functools
import os
from pathlib import Path

from te_select.errors import ArgumentError, ToolchainError, caught, warn

# What te-select reads, in Python and in C; docs/commands.md says what for.
BUILD = "TE_SELECT_BUILD"
KNOWN = (
    BUILD,
    "TE_SELECT_CACHE_DIR",
    "TE_SELECT_CACHE_SIZE",
    "TE_SELECT_CAPTURE",
    "TE_SELECT_KEEP_MEMORY",
    "TE_SELECT_LEVEL",
    "TE_SELECT_NUM_THREADS",
    "TE_SELECT_PRIVATE_COPY",
    "TE_SELECT_PROFILE",
    "TE_SELECT_TEAM",
)
OF_TESTS = (
    "TE_SELECT_CORPUS",
    "TE_SELECT_MODELS",
    "TE_SELECT_RANDOM_CALLS",
    "TE_SELECT_TEST_INSIDE",
)
_PREFIX = "TE_SELECT_"
# As they are at the start, before the program changes folders or its environment; a link is
# followed, so that it stays.
CAPTURE = os.environ.get("TE_SELECT_CAPTURE") and os.path.realpath(os.environ["TE_SELECT_CAPTURE"])


def building() -> str:
    """The value of ``TE_SELECT_BUILD``: ``"never"``, ``"error"``, or nothing if builds may begin.

    Raises
    ------
    ArgumentError
        If it has another value.
    """
    value = os.environ.get(BUILD, "")
    if value not in ("", "never", "error"):
        raise ArgumentError(f"{BUILD} is {value!r}; expected never, error, or no such variable")
    return value


def check_building(what: str) -> None:
    """Called before anything is built.

    Raises
    ------
    ToolchainError
        If ``TE_SELECT_BUILD`` forbids it.
    ArgumentError
        If the variable has a wrong value.
    """
    if value := building():
        raise ToolchainError(
            f"{BUILD} is {value}, which forbids to build {what}; expected it in the cache or in a "
            "library that was shipped, or no such variable"
        )


def unknown() -> list[str]:
    """One line for each variable that is set and looks like one of te-select's, but is none."""
    names = sorted(
        name for name in os.environ if name.startswith(_PREFIX) and name not in KNOWN + OF_TESTS
    )
    return [f"the variable {name!r} is not known; {_expected(name)}" for name in names]


@functools.cache
def warn_of_unknown() -> None:
    """Warn of variables that are not known, once in a process.

    Warns
    -----
    RuntimeWarning
        For each of them.
    """
    for line in unknown():
        warn(line)


def have_a_cache() -> None:
    """Name a temporary folder for caches, if the user has no home, as in containers.

    TVM asks for the home folder when it is imported, unless this variable is set.
    """
    try:
        Path.home()
    except caught(RuntimeError):
        import tempfile  # noqa: PLC0415 - kept off the import path

        own = Path(tempfile.gettempdir(), f"te-select-{os.getuid()}")
        os.environ.setdefault("XDG_CACHE_HOME", str(own))


def _expected(name: str) -> str:
    import difflib  # noqa: PLC0415 - kept off the import path

    ends = [each.removeprefix(_PREFIX) for each in KNOWN]  # the prefix would make all alike
    near = difflib.get_close_matches(name.removeprefix(_PREFIX), ends, 1)
    return f"did you mean {_PREFIX}{near[0]}?" if near else f"expected one of {', '.join(KNOWN)}"
