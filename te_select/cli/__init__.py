"""The command line, ``te-select``.

One module per verb. A verb imports NumPy, tvm and what needs them only when it runs, so that
``te-select --help`` answers at once.
"""

import sys
import warnings
from typing import Any

from te_select.base import imports, interrupts, variables
from te_select.base.imports import not_installed
from te_select.operator.broadcast import printable


def main() -> None:
    """Run the command line and exit: 0, 1 if something failed, 2 on bad usage."""
    interrupts.end_at_once()
    try:
        from te_select.cli.verbs import app  # noqa: PLC0415 - needs typer, which may be missing
    except ModuleNotFoundError as error:
        sys.exit(
            f"te-select: error: {not_installed('the command line', error)}; it needs the wheel "
            "of te-select, or that of te-select-runtime with [cli]: rich, typer and ml_dtypes"
        )
    warnings.showwarning = _warn
    variables.warn_of_unknown()
    if "bench" not in sys.argv[1:2]:  # it compares with torch
        imports.quickly()
    try:
        interrupts.raise_again()
        app()
    except KeyboardInterrupt:  # while an error was shown
        interrupts.end()
    finally:
        interrupts.end_at_once()


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"te-select: warning: {printable(str(message))}", file=sys.stderr)
