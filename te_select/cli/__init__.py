"""The command line, ``te-select``.

One module per verb. A verb imports NumPy, tvm and what needs them only when it runs, so that
``te-select --help`` answers at once.
"""

from __future__ import annotations

import sys

from te_select.errors import not_installed

INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit: 0, 1 if something failed, 2 on bad usage."""
    try:
        from te_select.cli.verbs import app  # noqa: PLC0415 - needs typer, which may be missing
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except ModuleNotFoundError as error:
        sys.exit(
            f"te-select: error: {not_installed('the command line', error)}, or "
            "te-select-runtime[cli], which verifies and inspects libraries"
        )
    app()
