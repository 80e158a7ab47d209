"""``te-select where`` and ``te-select onnxruntime``: build, which is one library for both."""

import time
from pathlib import Path
from typing import Annotated

from typer import Option

from te_select.cli.console import UsageError, progress, show
from te_select.cli.flags import Json, Profile, Verbs
from te_select.cli.paths import check_output
from te_select.operator import family

Target = Annotated[str, Option(help="A CPU, as for compile, or a list of them.")]
Output = Annotated[
    Path | None, Option("-o", "--output", help="The .so to write; default into the cache.")
]

where_app = Verbs(
    help="The kernels of te_select.where.\n\n"
    "They are built by themselves when they are first needed; this is for doing it beforehand, or "
    "for another machine."
)

onnxruntime_app = Verbs(
    help="The execution provider for ONNX Runtime.\n\n"
    "Python programs need only te_select.onnxruntime.register(session_options)."
)


@where_app.verb("build")
def build_command(
    target: Target = "native", output: Output = None, profile: Profile = True, as_json: Json = False
) -> None:
    """Build all kernels of te_select.where.

    Without -o and --json the machine's profile is measured first, which takes 8 seconds, once.

    A program takes a library that was written by -o with te_select.where.use("where.so"); it needs
    no compiler then.

    Example: te-select where build

    Example: te-select where build --target x86-64-v2,x86-64-v3,x86-64-v4 -o build/where.so
    """
    if output:
        output = check_output(output)
    elif target != "native":
        raise UsageError(
            f"--target {target} needs -o: the cache holds kernels for this CPU only; expected "
            "native, or -o and the .so to write"
        )
    start = time.perf_counter()
    from te_select.selecting.kernels import building  # noqa: PLC0415 - imports tvm
    from te_select.tuning.options import measure_profile  # noqa: PLC0415 - as above

    imported = time.perf_counter()
    if profile and output is None and not as_json and (line := measure_profile()):
        print(line)
    with progress("building", lines=not as_json) as step:
        path = building.build(output, target, step)
    show(
        {
            "path": path,
            "bytes": path.stat().st_size,
            "kernels": sum(map(len, family.parts().values())),
            "target": target,
            "seconds": round(time.perf_counter() - imported, 3),
            "import_seconds": round(imported - start, 3),
        },
        as_json,
    )


@onnxruntime_app.verb("build")
def build_provider_command(
    target: Target = "native", output: Output = None, as_json: Json = False
) -> None:
    """Build the library that programs in any language register with ONNX Runtime.

    It is the library of te-select where build. It exports CreateEpFactories, and needs neither
    Python nor TVM. A program registers it by RegisterExecutionProviderLibrary, or by the function
    of that name in its language, and adds the provider TeSelectExecutionProvider to its sessions.

    Example: te-select onnxruntime build -o build/libte_select_ort.so

    Example: te-select onnxruntime build --target aarch64 -o build/aarch64/libte_select_ort.so
    """
    build_command(target=target, output=output, profile=False, as_json=as_json)
