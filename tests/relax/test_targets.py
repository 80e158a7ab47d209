"""The target of a model's kernels follows TVM's."""

from platform import machine

import pytest
from tvm.target import Target

from te_select.backends.targets import resolve
from te_select.relax.passes import kernel_target


@pytest.mark.parametrize(
    "given, name",
    [
        (Target("llvm"), machine().replace("_", "-")),
        (Target({"kind": "llvm", "mtriple": "x86_64-conda-linux-gnu"}), "x86-64"),
        (Target({"kind": "llvm", "mcpu": "znver3", "num-cores": 2}), "znver3"),
        (Target({"kind": "llvm", "mcpu": "znver3"}, host="llvm"), "znver3"),
        (Target({"kind": "llvm", "mcpu": "znver3", "opt-level": 2, "libs": ["x"]}), "znver3"),
        (
            Target({"kind": "llvm", "mcpu": "znver5", "mattr": ["-avx512f"]}),
            '{"kind": "llvm", "mattr": ["-avx512f"], "mcpu": "znver5"}',
        ),
        (Target({"kind": "llvm", "mtriple": "aarch64-unknown-linux-gnu"}), "aarch64"),
        (
            Target({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1"}),
            "aarch64:neoverse-n1",
        ),
        ("x86-64-v2,x86-64-v3", "x86-64-v2,x86-64-v3"),
        ("llvm", machine().replace("_", "-")),
        (None, resolve("native").name),
    ],
)
def test_target_of_tvm_is_normalized(given, name):
    assert kernel_target(given) == name
