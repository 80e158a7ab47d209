"""What the compiler needs to know about a node of a model."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from te_select.operator.workload import Workload


@runtime_checkable
class Node(Protocol):
    """A node of a model; `te_select.ModelNode` is one."""

    @property
    def place(self) -> str:
        """Where it is in the model."""

    @property
    def name(self) -> str:
        """Its name there."""

    @property
    def op(self) -> str:
        """Its operator."""

    @property
    def status(self) -> str:
        """What te-select does with it."""

    @property
    def reason(self) -> str:
        """Why it has no kernel, if it has none."""

    @property
    def dtype(self) -> str | None:
        """Its element type, if that is known."""

    @property
    def workload(self) -> Workload | None:
        """Its workload, if it has a kernel."""
