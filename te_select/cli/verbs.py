"""The verbs of ``te-select``, put together."""

from __future__ import annotations

from typing import Annotated

import typer

import te_select
from te_select.cli.bench import bench_command
from te_select.cli.cache import cache_app
from te_select.cli.compile import compile_command
from te_select.cli.console import Group
from te_select.cli.environment import env_command
from te_select.cli.inspect import inspect_command
from te_select.cli.logs import logs_app
from te_select.cli.onnxruntime import onnxruntime_app
from te_select.cli.profile import profile_command
from te_select.cli.tune import tune_command
from te_select.cli.verify import verify_command
from te_select.cli.where import where_app

app = typer.Typer(
    name="te-select",
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Shapes are comma lists of sizes and names, such as 1,batch,128; "" is a scalar.',
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _name, _command in (
    ("compile", compile_command),
    ("verify", verify_command),
    ("inspect", inspect_command),
    ("env", env_command),
    ("bench", bench_command),
    ("tune", tune_command),
    ("profile", profile_command),
):
    app.command(_name)(_command)
app.add_typer(logs_app, name="logs", cls=Group)
app.add_typer(where_app, name="where", cls=Group)
app.add_typer(onnxruntime_app, name="onnxruntime", cls=Group)
app.add_typer(cache_app, name="cache", cls=Group)


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
