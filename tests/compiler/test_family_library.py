"""The family in the library of a model, for nodes that only the call decides; and by records."""

import dataclasses
from textwrap import dedent

from pytest import fixture, mark, raises

from te_select import ArgumentError, ModelNode, Workload, export, load
from te_select.backends.targets import resolve
from te_select.compiler.family_library import config_of, schedule_member, served_by_family
from te_select.operator import family
from te_select.records import folders, lookup, writer
from te_select.tuning.measuring import build_worker
from te_select.tuning.task import Candidate
from tests.support import python
from tests.support.libraries import beside
from tests.support.machines import on_x86_64
from tests.support.tuning import record

V3 = resolve("x86-64-v3")
RUNS = "w4 n:cte"

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
    return ModelNode(
        name="", place=place, op="Where-16", status=status, workload=workload,
        reason="the rank of then is known only at the call", cond_producer="", dtype=dtype,
    )  # fmt: skip


@fixture(scope="module")
def library(tmp_path_factory):
    """Of one compiled and one dispatched node of complex128, whose part of the family is small."""
    path = tmp_path_factory.mktemp("family") / "model.so"
    workload = Workload((4,), (4,), (), "complex128", "multidirectional")
    nodes = [node("complex128", "graph#1", "compiled", workload), node("complex128")]
    return export(nodes, path)


def test_dispatched_node_needs_the_library_and_no_compiler(library, tmp_path):
    code = dedent(WHERE).format(path=str(library), dtype="complex128")
    environment = {"TE_SELECT_CACHE_DIR": str(tmp_path), "PATH": "", "CC": "none"}
    assert "Stats(calls=3" in python(code, env=environment)
    assert not list(tmp_path.iterdir())


def test_workload_that_is_one_of_the_family_has_one_kernel(tmp_path):
    shapes = (("n",), ("n",), ("n",))
    workload = Workload(*shapes, "complex128", "multidirectional")
    path = export([workload, node("complex128")], tmp_path / "both.so")
    library = load(path)
    assert len(library) == 7
    python(dedent(WHERE).format(path=str(path), dtype="complex128"))


def test_node_of_an_unknown_type_needs_the_kernels_of_all_types():
    found = served_by_family([node(None), node("float16", "graph#1"), node("x", "y", "refused")])
    assert set(found) == {"graph#0", "graph#1"}
    assert {"w1", "w2", "w4", "w8", "w16"} <= set(found["graph#0"])
    assert found["graph#1"][0] == "w2"
    assert all(part.startswith("w2_rows") for part in found["graph#1"][1:])


def test_nodes_that_no_kernel_serves_are_refused(tmp_path):
    nodes = [node("string", status="refused"), node("int64", status="shape")]
    with raises(ArgumentError, match=r"none of the 2 nodes .* refused or shape"):
        export(nodes, tmp_path / "none.so")


def test_cuda_library_has_no_family(tmp_path):
    with raises(ArgumentError, match="the status of each is dispatched"):
        export([node("float32")], tmp_path / "none.so", target="cuda:sm_80")


def add(logs, name=RUNS, **knobs):
    """Record a config for a kernel of the family."""
    sized = family.typical(family.kernels()[name])
    default = config_of(family.kernels()[name], V3, {})
    config = dataclasses.replace(default, **knobs or {"vector_bytes": 32, "unroll": 2})
    writer.put(logs / V3.name, [record(sized, V3, config)])


def built(name=RUNS, target=V3, **options):
    """The knobs of a kernel of the family, and where they come from."""
    found = schedule_member(family.kernels()[name], target, **options)
    assert found.config.piece == 1 << 30 and found.config.bytes_per_thread == 0
    return (found.config.vector_bytes, found.config.unroll), found.origin


def test_kernel_has_the_config_of_its_record(own_records):
    add(own_records)  # of a plain workload
    assert built() == ((64, 4), "default")
    add(own_records / "where")
    assert built() == ((32, 2), "tuned:x86-64-v3/w4_16384cte")
    assert built("w4 n:ct") == built("w8 n:cte") == ((64, 4), "default")
    rows = "w4 m:cte x n:t"
    add(own_records / "where", rows, vector_bytes=16)
    assert built(rows) == ((16, 4), "tuned:x86-64-v3/w4_655cte_25t")


def test_record_decides_only_what_the_c_half_does_not(own_records):
    add(own_records / "where", unroll=8, stream_from=0, skip=1, bytes_per_thread=1 << 20, piece=64)
    assert built()[0] == (64, 8)
    config = schedule_member(family.kernels()[RUNS], V3).config
    assert config == config_of(family.kernels()[RUNS], V3, {"unroll": 8})


def test_shipped_record_serves_unless_there_is_an_own_one(own_records):
    add(folders.SHIPPED / "where", unroll=1)
    assert built()[0] == (64, 1)
    add(own_records / "where", unroll=2)
    assert built()[0] == (64, 2)


def test_plain_workload_is_not_built_by_a_record_of_the_family(own_records):
    add(own_records / "where")
    found = lookup.find(family.typical(family.kernels()[RUNS]), V3)
    assert found.origin == "default"


@on_x86_64
@mark.parametrize(
    "tuning_logs, origin",
    [(None, "tuned:x86-64-v3/w8_4096cte_2te"), (False, "default"), (".", "default")],
)
def test_library_of_a_model_uses_records_unless_told_otherwise(
    own_records, tmp_path, tuning_logs, origin
):
    add(own_records / "where", "w16 n:cte x 2:te", vector_bytes=16)
    path = tmp_path / "model.so"
    export([node("complex128")], path, "x86-64-v3", tuning_logs)
    kernels = beside(path)["kernels"]
    assert {each["origin"] for each in kernels} == {"default", origin}


def test_candidate_of_the_family_is_built_as_where_has_it(tmp_path):
    member = family.kernels()["w4 m:cte x n:t"]
    config = dataclasses.asdict(config_of(member, resolve("native"), {"vector_bytes": 16}))
    candidate = Candidate(member, "native", config, of_family=True)
    build_worker.Worker.build_candidate(None, candidate, tmp_path / "x.so")
    kernel = load(tmp_path / "x.so")
    assert kernel.workload == member and kernel.config["vector_bytes"] == 16
