"""``te-select onnxruntime``: build."""

from __future__ import annotations

import typer

from te_select.cli.console import JsonFlag
from te_select.cli.where import Output, Target, build_command

onnxruntime_app = typer.Typer(
    help="The execution provider for ONNX Runtime.\n\n"
    "Python programs need only te_select.onnxruntime.register(session_options).\n\n"
    "Example: te-select onnxruntime build -o build/libte_select_ort.so",
    rich_markup_mode=None,
)


@onnxruntime_app.callback()
def _only_verbs() -> None:
    """Make ``build`` a word of its own, though it is the only one."""


@onnxruntime_app.command("build")
def build_provider_command(
    target: Target = "native", output: Output = None, as_json: JsonFlag = False
) -> None:
    """Build the library that programs in any language register with ONNX Runtime.

    It is the library of te-select where build. It exports CreateEpFactories, and needs neither
    Python nor TVM. A program registers it by RegisterExecutionProviderLibrary, or by the function
    of that name in its language, and adds the provider TeSelectExecutionProvider to its sessions.

    Example: te-select onnxruntime build -o build/libte_select_ort.so

    Example: te-select onnxruntime build --target aarch64 -o build/aarch64/libte_select_ort.so
    """
    build_command(target, output, as_json)
