"""The command line, ``te-select``.

One module per verb. A verb imports NumPy, tvm and what needs them only when it runs, so that
``te-select --help`` answers at once.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit: 0, 1 if something failed, 2 on bad usage."""
    try:
        from te_select.cli.verbs import app  # noqa: PLC0415 - needs typer, which may be missing
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("te_select"):
            raise
        sys.exit(
            f"te-select: the command line needs {error.name}, which is not installed; expected "
            "te-select-runtime[cli], to verify and inspect libraries, or te-select, to build them"
        )
    app()
