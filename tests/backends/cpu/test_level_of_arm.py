"""A level outside x86-64: what it adds is asked of the CPU, by a row that only this test has."""

import json

import pytest

from te_select import Workload
from te_select.errors import ToolchainError
from te_select.verify.verify import verify_kernel
from tests.support import foreign
from tests.support.edited_copy import run_with

pytestmark = pytest.mark.slow

ROW = ' Level("aarch64:sve", vector_bytes=64, unroll=4, features={"sve": "sve"}, '
ROW += 'needs=frozenset({"sve"})),'
EDITS = {
    "schedules/cpu/isa.py": (ROW, '),\n    of_models=spelt(\n        "neon'),
    "te_select/runtime/c/cpu/cpu_features.c": ('{"sve", FIRST, 22}, ', '{"sha3", FIRST, 17}'),
}
WORKLOADS = [
    *(Workload((4099,), (4099,), (4099,), dtype) for dtype in ("int8", "float32", "float64")),
    Workload((999, 1), (999, 3), (999, 3), "int16"),
    Workload((8, 1, 33), (8, 12, 33), ()),
]
ASK = f"""
import json
import te_select
from te_select import Workload
from te_select.backends.targets import resolve
from te_select.errors import ToolchainError
from te_select.schedules.cpu import isa
workloads = {WORKLOADS!r}
said = {{"skip": ""}}
try:
    for name in ("aarch64:sve", "aarch64,aarch64:sve"):
        te_select.export(workloads, name + ".so", name, tuning_logs=False)
except ToolchainError as error:
    said["skip"] = str(error)
for name in ("aarch64", "aarch64:sve", "aarch64:neoverse-v1"):
    target = resolve(name)
    said[name] = ["sve" in target.cpu_features, "sve" in isa.features_of(target.tvm)]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """The folder with the libraries, and what is said of three targets."""
    folder = tmp_path_factory.mktemp("sve")
    return folder, json.loads(run_with(EDITS, folder, ASK))


def host(libraries, name, cpu):
    """The command that runs a library on a CPU; a skip if that cannot be."""
    folder, said = libraries
    emulator = foreign.emulator("aarch64")
    if said["skip"] or emulator is None:
        pytest.skip(said["skip"] or "no emulator of aarch64 is installed")
    try:
        program = foreign.build_host("aarch64", folder)
    except ToolchainError as error:
        pytest.skip(str(error))
    return [*emulator, "-cpu", cpu, program, folder / f"{name}.so"]


def test_feature_is_used_and_asked_for_if_the_level_has_it(libraries):
    _, said = libraries
    assert said["aarch64:sve"] == [True, True]
    assert said["aarch64"] == said["aarch64:neoverse-v1"] == [False, False]


@pytest.mark.parametrize(
    ("name", "cpu"),
    [
        ("aarch64:sve", "max,sve=on,sve-default-vector-length=16"),
        ("aarch64:sve", "max,sve=on,sve-default-vector-length=64"),
        ("aarch64,aarch64:sve", "max,sve=on"),
        ("aarch64,aarch64:sve", "cortex-a72"),
    ],
)
def test_cpu_that_has_the_feature_selects_the_right_bits(libraries, name, cpu):
    with foreign.Host(*host(libraries, name, cpu)) as process:
        results = [r for kernel in process.kernels() for r in verify_kernel(kernel, 1)]
    assert {result.kernel for result in results} == {workload.name for workload in WORKLOADS}
    assert [(r.kernel, r.check, r.message) for r in results if not r.passed] == []


@pytest.mark.parametrize(
    ("cpu", "lacks"),
    [("cortex-a72", "asimdhp"), ("max,sve=off", "sve")],  # LLVM adds asimdhp to sve
)
def test_cpu_that_lacks_the_feature_refuses(libraries, cpu, lacks):
    with foreign.Host(*host(libraries, "aarch64:sve", cpu)) as process:
        results = [r for kernel in process.kernels() for r in verify_kernel(kernel, 1)]
    assert not any(r.passed for r in results)
    assert all(f"this CPU lacks {lacks}" in r.message for r in results)
