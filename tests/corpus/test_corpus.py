"""Right cases of a corpus pass, and each kind of fault is found.

With ``TE_SELECT_CORPUS`` set, the whole corpus in that folder runs too.
"""

import json
from os import environ
from pathlib import Path

from pytest import fixture, mark

from tests.corpus.cases import read
from tests.corpus.run import check


def case(op, cond, then, else_, out=None, /, **more):
    """A static case; one without ``out`` must be refused."""
    return {
        "id": "mine",
        "op": op,
        "attrs": {},
        "cond_shape": cond,
        "then_shape": then,
        "else_shape": else_,
        "cond_dtype": "boolean",
        "dtype": "f32",
        "expect": "error" if out is None else "ok",
        **({} if out is None else {"out_shape": out}),
        **more,
    }


PASSING = {
    "pdpd axis": case(
        "openvino.Select-1", [3], [2, 3, 4], [3, 1], [2, 3, 4],
        attrs={"auto_broadcast": "pdpd", "axis": 1}, dtypes=["f32", "i8", "bf16"],
    ),
    "raw bits": case(
        "openvino.gpu_select_primitive", [2], [2], [2], [2], cond_dtype="f16", dtype="f16",
        cond_are_raw_bits=True, data_are_raw_bits=True,
        **{"cond": [1, 32768], "then": [1, 2], "else": [3, 4], "out": [1, 4]},
    ),
    "expression": case(
        "tinygrad.where", [2, 2], [2, 2], [], [2, 2], cond=[0] * 4,
        then_expr="np.full((2,2),np.inf)", out=[1] * 4, **{"else": [1]},
    ),
    "targets": case(
        "openvino.Select-1", None, None, None, [],
        targets=[{"cond": [4], "then": [3, 1], "else": [1], "out": [3, 4]}],
    ),
}  # fmt: skip

WRONG = {
    "other shape": case(
        "numpy.where", [2], [3, 2], [], [3, 1], why="out_shape is (3, 2), expected (3, 1)"
    ),
    "other value": case(
        "numpy.where", [2], [2], [], [2], dtype="i8", cond=[1, 0], then=[1, 2], out=[1, 2],
        why="out[1] is 0x03, the case expects 0x02", **{"else": [3]},
    ),
}  # fmt: skip


@fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    path = folder / "c.json"
    path.write_text(json.dumps([{**one, "id": name} for name, one in (PASSING | WRONG).items()]))
    return check(read(path), folder)


def of_case(name, results):
    found = [result for result in results if result.run.case["id"] == name]
    assert found
    return found


@mark.parametrize("name", PASSING)
def test_case_passes(name, results):
    for result in of_case(name, results):
        assert (result.skipped, result.wrong) == ("", "")
        assert bool(result.values) == (result.run.accepts and 0 not in result.run.instance.out)


@mark.parametrize("name", WRONG)
def test_a_case_that_does_not_hold_fails(name, results):
    (result,) = of_case(name, results)
    assert WRONG[name]["why"] in result.wrong and not result.skipped


@mark.slow
@mark.skipif("TE_SELECT_CORPUS" not in environ, reason="TE_SELECT_CORPUS is not set")
def test_the_corpus_passes(tmp_path):
    runs = read(*sorted(Path(environ["TE_SELECT_CORPUS"]).glob("*.json")))
    found = check(runs, tmp_path)
    assert [(str(each.run), each.wrong) for each in found if each.wrong] == []
    assert sum(each.values > 0 for each in found) > len(found) // 2 > 100
