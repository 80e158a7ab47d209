"""The verbs of ``te-select``, put together."""

import importlib.util
from typing import Annotated

from typer import Exit, Option

import te_select
from te_select.cli.bench import bench_command
from te_select.cli.cache import cache_app
from te_select.cli.compile import compile_command
from te_select.cli.console import Group
from te_select.cli.env import env_command
from te_select.cli.flags import Verbs
from te_select.cli.inspect import inspect_command
from te_select.cli.logs import logs_app
from te_select.cli.profile import profile_command
from te_select.cli.tune import tune_command
from te_select.cli.verify import verify_command
from te_select.cli.where import onnxruntime_app, where_app

app = Verbs(
    name="te-select",
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Shapes are comma lists of sizes and names, such as 1,batch,128; "" is a scalar.',
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
_hidden = importlib.util.find_spec("te_select.tuning") is None  # as in te-select-runtime
app.verb("compile", hidden=_hidden)(compile_command)
app.verb("verify")(verify_command)
app.verb("inspect")(inspect_command)
app.verb("env")(env_command)
app.verb("bench", hidden=_hidden)(bench_command)
app.verb("tune", hidden=_hidden)(tune_command)
app.verb("profile", hidden=_hidden)(profile_command)
app.add_typer(logs_app, name="logs", hidden=_hidden)
app.add_typer(where_app, name="where", hidden=_hidden)
app.add_typer(onnxruntime_app, name="onnxruntime", hidden=_hidden)
app.add_typer(cache_app, name="cache")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"te-select {te_select.__version__}")
        raise Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Compile Select (Where) into kernels for this machine or others, tune them and ship them."""
