"""The verbs of ``te-select``, put together."""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

import te_select
from te_select.cli.bench import bench_command
from te_select.cli.cache import cache_app
from te_select.cli.compile import compile_command
from te_select.cli.console import Group
from te_select.cli.environment import env_command
from te_select.cli.flags import GroupedCommand
from te_select.cli.inspect import inspect_command
from te_select.cli.logs import logs_app
from te_select.cli.profile import profile_command
from te_select.cli.tune import tune_command
from te_select.cli.verify import verify_command
from te_select.cli.where import onnxruntime_app, where_app

app = typer.Typer(
    name="te-select",
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Shapes are comma lists of sizes and names, such as 1,batch,128; "" is a scalar.',
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_OF_RUNTIME = ("verify", "inspect", "env", "cache")
_hides = importlib.util.find_spec("te_select.compiler") is None  # as in te-select-runtime
for _name, _command in (
    ("compile", compile_command),
    ("verify", verify_command),
    ("inspect", inspect_command),
    ("env", env_command),
    ("bench", bench_command),
    ("tune", tune_command),
    ("profile", profile_command),
):
    app.command(_name, cls=GroupedCommand, hidden=_hides and _name not in _OF_RUNTIME)(_command)
for _name, _verbs in (
    ("logs", logs_app),
    ("where", where_app),
    ("onnxruntime", onnxruntime_app),
    ("cache", cache_app),
):
    app.add_typer(_verbs, name=_name, cls=Group, hidden=_hides and _name not in _OF_RUNTIME)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"te-select {te_select.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Compile Select (Where) into the fastest kernel that a machine can run."""
