"""The errors of te_select.

Every message names the offending value and what would have been accepted. If a call raises one of
these errors, nothing was written to ``out``.
"""

from te_select.errors.catching import asked as asked
from te_select.errors.catching import caught as caught
from te_select.errors.catching import is_a as is_a
from te_select.errors.catching import suppress as suppress
from te_select.errors.notices import warn as warn


class SelectError(Exception):
    """Base of every error of te_select."""


class BroadcastError(SelectError, ValueError):
    """Shapes, an axis or a rule that make no workload."""


class ArgumentError(SelectError, ValueError):
    """An argument that cannot be taken: a tensor's shape, layout, device or memory, or a value."""


class DTypeError(SelectError, TypeError):
    """An element type that a workload, a system or a kernel does not take."""


class TargetError(SelectError, ValueError):
    """A target that is unknown, or that this machine cannot run."""


class ArtifactError(SelectError, RuntimeError):
    """A shared library or manifest that is missing, damaged, or not for this machine."""


class ToolchainError(SelectError, RuntimeError):
    """A compiler or linker that is missing or fails."""


class NotInstalledError(ToolchainError, AttributeError):
    """Something needs a package that is not there, as in te-select-runtime.

    It is an AttributeError for `hasattr` and `help`, which ask for names such as `te_select.tune`.
    """


class TuningError(SelectError, RuntimeError):
    """A tuning session or tuning logs that cannot be used."""


class ModelError(SelectError, ValueError):
    """A model file that cannot be read."""
