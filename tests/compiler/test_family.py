"""Nodes that only the call decides, served by the family in the library of a model."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

import te_select
from te_select.compiler.family import served_by_family

WHERE = """
    import numpy as np
    import te_select

    te_select.where.use({path!r})
    rng = np.random.default_rng(1)
    shapes = ((), (7,), ()), ((5, 1), (1, 3), (5, 3)), ((2, 1, 4), (4,), (2, 3, 1))
    for cond, then, else_ in shapes:
        c = rng.integers(0, 2, cond).astype(bool)
        x, y = (rng.integers(0, 99, shape).astype({dtype!r}) for shape in (then, else_))
        assert te_select.where(c, x, y).tobytes() == np.where(c, x, y).tobytes()
    print(te_select.where.stats())
"""


def node(dtype, place="graph#0", status="dispatched", workload=None):
    return te_select.ModelNode(
        name="", place=place, op="Where-16", status=status, workload=workload,
        reason="the rank of then is known only at the call", cond_producer="", dtype=dtype,
    )  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Of one compiled and one dispatched node of complex128, whose part of the family is small."""
    path = tmp_path_factory.mktemp("family") / "model.so"
    workload = te_select.Workload((4,), (4,), (), "complex128", "multidirectional")
    nodes = [node("complex128", "graph#1", "compiled", workload), node("complex128")]
    return te_select.export(nodes, path)


def test_dispatched_node_needs_the_library_and_no_compiler(library, tmp_path):
    code = textwrap.dedent(WHERE).format(path=str(library), dtype="complex128")
    environment = {"TE_SELECT_CACHE_DIR": str(tmp_path), "PATH": "", "CC": "none"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert run.returncode == 0, run.stderr
    assert "Stats(calls=3" in run.stdout
    assert not list(tmp_path.iterdir())


def test_manifest_names_the_function_that_serves_a_node(library):
    nodes = json.loads(library.with_suffix(".json").read_text())["nodes"]
    assert [one["symbol"] for one in nodes][1] == "te_select_where"
    assert nodes[0]["symbol"].startswith("select_complex128")


def test_library_of_dispatched_nodes_alone(tmp_path):
    path = te_select.export([node("complex128")], tmp_path / "only.so")
    assert len(te_select.load(path)) == 7


def test_workload_that_is_one_of_the_family_has_one_kernel(tmp_path):
    shapes = (("n",), ("n",), ("n",))
    workload = te_select.Workload(*shapes, "complex128", "multidirectional")
    path = te_select.export([workload, node("complex128")], tmp_path / "both.so")
    library = te_select.load(path)
    assert len(library) == 7
    code = textwrap.dedent(WHERE).format(path=str(path), dtype="complex128")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_node_of_an_unknown_type_needs_the_kernels_of_all_types():
    found = served_by_family([node(None), node("float16", "graph#1"), node("x", "y", "refused")])
    assert set(found) == {"graph#0", "graph#1"}
    assert {"w1", "w2", "w4", "w8", "w16"} <= set(found["graph#0"])
    assert found["graph#1"][0] == "w2"
    assert all(part.startswith("w2_rows") for part in found["graph#1"][1:])


def test_nodes_that_no_kernel_serves_are_refused(tmp_path):
    nodes = [node("string", status="refused"), node("int64", status="shape")]
    with pytest.raises(te_select.ArgumentError, match=r"none of the 2 nodes .* refused or shape"):
        te_select.export(nodes, tmp_path / "none.so")


def test_cuda_library_has_no_family(tmp_path):
    with pytest.raises(te_select.ArgumentError, match="the status of each is dispatched"):
        te_select.export([node("float32")], tmp_path / "none.so", target="cuda:sm_80")
