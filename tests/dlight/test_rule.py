"""The dlight rule: what it schedules, what it leaves to TVM, and that the bits stay the same."""

import tvm
from pytest import mark
from tvm import relax
from tvm.s_tir import dlight

from te_select import Workload
from te_select.dlight import Select, rule
from te_select.operator.access import access_pattern
from te_select.schedules.cpu import isa
from te_select.schedules.cpu.defaults import default_config
from te_select.schedules.cpu.span import BACKWARDS, SKIP, STREAM
from tests.support import flat_and_scalar, shapes
from tests.support.relax_models import TARGET, expected, operands, run, where_module

AROUND_A_VECTOR = (1, 7, 15, 16, 17, 31, 63, 64, 65, 129, 4099)
CASES = [
    *(((n,), (n,), (n,), "float32") for n in AROUND_A_VECTOR),
    ((1 << 17,), (1 << 17,), (1 << 17,), "int16"),
    (*shapes("1,1,128,128 4,3,128,128 ()"), "float32"),
    (*shapes("70000,1 70000,3 70000,3"), "float32"),
    (*shapes("70000,1 70000,7 7"), "int8"),
    (*shapes("64,1 64,2048 1,2048"), "float64"),
    (*shapes("n n n"), "bfloat16"),
    (*shapes("b,1,s b,h,s ()"), "bool"),
    ((("n", 2), 1), (("n", 2), "m"), (1, "m"), "float16"),
    (*shapes("2048 1 2048"), "float8_e4m3fn"),
    ((), (), (), "uint64"),
]
LEFT = {
    "rows_of_63": shapes("1000,1 1000,63 1000,63"),
    "no_elements": shapes("0,4 0,4 ()"),
    "without_kernel": ((512,), (512,), (512,), "int4"),
}


def legalized(*case):
    with TARGET:
        return relax.transform.LegalizeOps()(where_module(*case))


def scheduled(mod):
    with TARGET:
        return dlight.ApplyDefaultSchedule(Select())(mod)


@mark.parametrize("case", CASES, ids=lambda case: f"{case[3]}-{case[1]}")
def test_scheduled_where_gives_the_same_bits(case):
    arrays = operands(*case)
    mod = scheduled(legalized(*case))
    assert mod["where"].attrs["tirx.is_scheduled"]
    assert run(mod, TARGET, arrays) == expected(arrays)


@mark.parametrize("case", LEFT.values(), ids=LEFT)
def test_what_is_better_left_is_left_to_tvm(case):
    func = legalized(*case)["where"]
    assert Select().apply(func, TARGET, False) is None


def test_function_that_is_no_select_is_left_to_tvm():
    mod = legalized(*[(512,)] * 3, "float32", lambda _cond, x, _y: relax.op.exp(x))
    assert Select().apply(mod["tir_exp"], TARGET, False) is None
    assert "T.parallel" not in str(scheduled(mod))


OTHER_TARGETS = (
    {"kind": "cuda", "arch": "sm_80"},
    {"kind": "c"},
    {"kind": "llvm", "mtriple": "arm-linux-gnueabihf"},
)


@mark.parametrize("kind", OTHER_TARGETS)
def test_target_that_is_no_cpu_of_ours_is_left_to_tvm(kind):
    func = legalized((512,), (512,), (512,))["where"]
    assert Select().apply(func, tvm.target.Target(kind), False) is None


@mark.parametrize(
    "case, parallel, past_cache",
    [
        (((4096,), (4096,), (4096,)), False, False),
        (((1 << 20,), (1 << 20,), (1 << 20,)), True, False),
        (((1 << 24,), (1 << 24,), (1 << 24,)), True, True),
        ((("n",), ("n",), ("n",)), True, False),
    ],
)
def test_size_decides_on_threads_and_on_stores_past_the_cache(case, parallel, past_cache):
    text = str(scheduled(legalized(*case))["where"])
    assert ("T.parallel" in text) == parallel
    stores = "te_select_store_past_cache" in simplified(scheduled(legalized(*case)))
    assert stores == (past_cache and isa.of(TARGET).streams)


def simplified(mod):
    """The function without what its constant flags rule out."""
    return str(tvm.s_tir.transform.StmtSimplify()(mod)["where"])


def test_select_that_is_not_of_a_where_is_left_to_tvm():
    from tests.support import selects_of_no_where as given  # TVM reads them in 4 s

    rule = Select()
    assert all(rule.apply(each, TARGET, False) for each in given.WHERES)
    assert [name for name, each in given.OTHERS.items() if rule.apply(each, TARGET, False)] == []


@mark.parametrize(
    "elements, left", [(31, False), (32, True), (255, True), (256, False), ("m", False)]
)
def test_rows_of_128_to_1023_bytes_are_left(elements, left):
    pattern = access_pattern(Workload((1000, 1), (1000, elements), (1000, elements)))
    assert rule._is_better_left(pattern) == left
    if elements == "m":
        assert default_config(pattern, TARGET).rows and not rule._config(pattern, TARGET).rows


@mark.parametrize("rows, streams", [((1 << 26) - 1, False), (1 << 26, True), ("n", False)])
def test_stores_of_64_mb_go_past_the_cache(rows, streams):
    flags = rule._flags(access_pattern(flat_and_scalar(rows, "int8")))
    assert flags == SKIP | BACKWARDS | (STREAM if streams else 0)
