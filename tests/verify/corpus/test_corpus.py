"""Tests of the conformance runner: right cases pass, and each kind of fault is found.

With ``TE_SELECT_CORPUS`` set, the whole corpus in that folder runs too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from te_select.errors import SelectError
from te_select.verify.corpus import RunResult, read_corpus, run_corpus, values
from te_select.verify.corpus import run as run_module
from te_select.verify.corpus.partial import instances

Case = dict[str, Any]


def case(op: str, cond: Any, then: Any, else_: Any, out: Any = None, /, **more: Any) -> Case:
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


def partial(cond: Any, then: Any, else_: Any, out: Any, **more: Any) -> Case:
    return {
        "id": "mine",
        "op": "openvino.Select-1",
        "attrs": {"auto_broadcast": "numpy"},
        "cond_pshape": cond,
        "then_pshape": then,
        "else_pshape": else_,
        "out_pshape": out,
        "cond_dtype": "boolean",
        "then_dtype": "f32",
        "else_dtype": "f32",
        "expect": "ok",
        **more,
    }


PASSING = {
    "zero against one": case("onnx.Where-9", [3], [1, 3], [0, 1], [0, 3]),
    "cond widens": case("onnx.Where-16", [3, 1], [2], [2], [3, 2], dtype="bf16"),
    "no bfloat16 before opset 16": case("onnx.Where-9", [2], [2], [2], dtype="bf16"),
    "else of another type": case("onnx.Where-16", [2], [2], [2], else_dtype="f64"),
    "cond widens oneDNN": case("onednn_graph.Select", [3], [1], [1]),
    "cond not boolean": case("onednn_graph.Select", [2], [2], [2], cond_dtype="f32"),
    "pdpd axis": case(
        "openvino.Select-1", [3], [2, 3, 4], [3, 1], [2, 3, 4],
        attrs={"auto_broadcast": "pdpd", "axis": 1}, dtypes=["f32", "i8", "bf16"],
    ),
    "legacy pdpd is refused": case(
        "ngraph.legacy_Select-1", [4], [4], [2, 4], [2, 4],
        attrs={"auto_broadcast": "pdpd", "axis": 1},
    ),
    "binary of other ranks": case("onednn.binary_select", [4], [3, 4], [3, 4], cond_dtype="s8"),
    "binary": case("onednn.binary_select", [1, 4], [3, 4], [3, 1], [3, 4], cond_dtype="s8"),
    "binary cond u8": case("onednn.binary_select", [4], [4], [4], cond_dtype="u8"),
    "lax.select does not broadcast": case("jax.lax.select", [1], [3], [3]),
    "negative zero": case(
        "onnx.Where-9", [1], [2], [1], [2],
        **{"cond": [0], "then": [1.0, 2.0], "else": [-0.0], "out": [-0.0, -0.0]},
    ),
    "float cond": case(
        "openvino.gpu_select_primitive", [4], [4], [], [4], cond_dtype="f32",
        **{"cond": [0.1, -0.0, 1e-45, 0.0], "then": [1, 2, 3, 4], "else": [9],
           "out": [1, 9, 3, 9]},
    ),
    "raw bits": case(
        "openvino.gpu_select_primitive", [2], [2], [2], [2], cond_dtype="f16", dtype="f16",
        cond_are_raw_bits=True, data_are_raw_bits=True,
        **{"cond": [1, 32768], "then": [1, 2], "else": [3, 4], "out": [1, 4]},
    ),
    "whole integers": case(
        "numpy.where", [2], [2], [], [2], cond_dtype="i64",
        **{"cond": [256, 0], "then": [1, 2], "else": [5], "out": [1, 5]},
    ),
    "reversed view": case(
        "numpy.where", [18], [18], [18], [18], attrs={"view_of_length": 53, "slice_all": "::-3"}
    ),
    "expression": case(
        "tinygrad.where", [2, 2], [2, 2], [], [2, 2], cond=[0] * 4,
        then_expr="np.full((2,2),np.inf)", out=[1] * 4, **{"else": [1]},
    ),
    "F layout": case("torch.where", [3, 5], [3, 5], [3, 5], [3, 5], attrs={"layouts": ["C", "F"]}),
    "symbols": partial(
        ["a", 1], ["b"], [], ["a", "b"], op="tvm.relax.where", attrs={}
    ),
    "open dims": partial([2, -1, -1], [-1, 8, -1], [-1, -1, 3], [2, 8, 3]),
    "clash of static dims": partial([3, -1], [2, -1], [2, 4], None, expect="error"),
    "targets": partial(
        [-1], [-1, -1], [-1], None,
        targets=[{"cond": [4], "then": [3, 1], "else": [1], "out": [3, 4]}],
    ),
}  # fmt: skip

SKIPPED = {
    "string": case("onnx.Where-9", [2], [2], [2], [2], dtype="string"),
    "mixed": case("numpy.where", [2], [2], [2], [2], then_dtype="u32", else_dtype="f64"),
    "converted": case("onednn.binary_select", [2], [2], [2], [2], dtypes=["u8:s8->s8"]),
    "unknown rank": partial(None, None, None, None),
}


def write(path: Path, cases: list[Case]) -> Path:
    path.write_text(json.dumps(cases))
    return path


def numbered(cases: dict[str, Case]) -> list[Case]:
    return [{**one, "id": name} for name, one in cases.items()]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[RunResult]:
    path = tmp_path_factory.mktemp("corpus") / "cases.json"
    return run_corpus([write(path, numbered(PASSING) + numbered(SKIPPED))])


@pytest.mark.parametrize("name", PASSING)
def test_case_passes(name: str, results: list[RunResult]) -> None:
    mine = [result for result in results if result.case == name]
    assert mine
    assert [(r.status, r.reason) for r in mine] == [("passed", "")] * len(mine)


@pytest.mark.parametrize("name", SKIPPED)
def test_case_is_skipped_with_its_reason(name: str, results: list[RunResult]) -> None:
    (mine,) = (result for result in results if result.case == name)
    assert mine.status == "skipped"
    assert mine.reason


def test_a_case_has_a_run_per_dtype_layout_and_target(tmp_path: Path) -> None:
    runs = read_corpus(write(tmp_path / "c.json", numbered(PASSING)))
    labels = {name: [r.label for r in runs if r.case_id == name] for name in PASSING}
    assert labels["pdpd axis"] == ["f32", "i8", "bf16"]
    assert labels["F layout"] == ["f32", "f32 F"]
    assert labels["targets"] == ["f32 target 0"]
    assert labels["open dims"] == ["f32 open dims equal", "f32 open dims broadcast"]
    assert labels["symbols"] == ["f32 a,b = 2,3", "f32 a,b = 1,1"]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (case("numpy.where", [2], [3, 2], [], [3, 1]), "out_shape is (3, 2), expected (3, 1)"),
        (case("numpy.where", [2], [3], [], [3]), "BroadcastError|do not broadcast"),
        (case("numpy.where", [2], [2], []), "accepted, with out_shape (2,); expected an error"),
        (
            case(
                "numpy.where", [2], [2], [], [2], dtype="i8",
                **{"cond": [1, 0], "then": [1, 2], "else": [3], "out": [1, 2]},
            ),
            "out[1] is 0x03, the case expects 0x02",
        ),
        (case("torch.where", [2], [2], [], [2], cond_dtype="i64"), "DTypeError"),
    ],
)  # fmt: skip
def test_a_case_that_does_not_hold_fails(wrong: Case, reason: str, tmp_path: Path) -> None:
    path = write(tmp_path / "c.json", [wrong])
    (result,) = run_corpus([path], seed=4)
    assert result.status == "failed"
    assert any(part in result.reason for part in reason.split("|"))
    assert result.command == f"te-select verify --corpus {path} --case mine --seed 4"


def test_a_kernel_with_one_wrong_element_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(cond: Any, then: Any, else_: Any) -> Any:
        out = np.where(cond, then, else_)
        out.view(np.uint32)[2] ^= 1
        return out

    monkeypatch.setattr(
        run_module, "_build", lambda workloads, *_: ({w.name: wrong for w in workloads}, {})
    )
    cases = [case("numpy.where", [5], [5], [5], [5])]
    (result,) = run_corpus([write(tmp_path / "c.json", cases)])
    assert result.status == "failed"
    assert result.reason.startswith("out[2] is 0x")


def test_a_workload_that_does_not_compile_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def export(workloads: Any, path: Path, target: str) -> Path:
        if any(w.dtype == "int8" for w in workloads):
            raise RuntimeError("no code for int8")
        return path

    class FakeKernel:
        kind = "cpu"

        def __init__(self, path: Path) -> None:
            name = path.stem
            self.workload = next(w for w in made if w.name == name)

        def __call__(self, cond: Any, then: Any, else_: Any) -> Any:
            return np.where(cond, then, else_).astype(then.dtype)

    class FakeTeSelect:
        Kernel = FakeKernel
        load = FakeKernel

    FakeTeSelect.export = staticmethod(export)  # type: ignore[attr-defined]
    cases = [case("numpy.where", [5], [5], [5], [5], dtypes=["i8", "i16"])]
    path = write(tmp_path / "c.json", cases)
    made = [run_module._workload(run) for run in read_corpus(path)]
    monkeypatch.setattr(run_module, "te_select", FakeTeSelect)
    first, second = run_corpus([path])
    assert (first.status, first.reason) == ("failed", "RuntimeError: no code for int8")
    assert (second.status, second.reason) == ("passed", "")


def test_one_case_of_a_file_runs_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "c.json", numbered(PASSING))
    assert {r.case for r in run_corpus([path], case_id="negative zero")} == {"negative zero"}
    with pytest.raises(SelectError, match="has no case 'x'"):
        run_corpus([path], case_id="x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "expected a JSON list of cases"),
        ('[{"id": "a"}]', "case 'a' has no '"),
        ('[{"id": "a", "op": "tf.where"}]', "op 'tf.where' is not known"),
    ],
)
def test_a_file_that_is_no_corpus_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(SelectError, match=message):
        read_corpus(path)


@pytest.mark.parametrize(
    "text", ["__import__('os').getcwd()", "np.load('x')", "np.zeros", "(1).real", "np.zeros(3"]
)
def test_an_expression_runs_no_code(text: str) -> None:
    with pytest.raises(SelectError, match="cannot be read"):
        values.evaluate(text)


def test_open_dims_take_sizes_within_their_intervals() -> None:
    found, reason = instances(partial([[2, 8], [1, 6]], [-1, -1], [[1, 5], 5], [[2, 8], 5]))
    assert not reason
    equal, spread = found
    assert equal.shapes == {"cond": (2, 5), "then": (2, 5), "else": (2, 5)}
    assert spread.shapes == {"cond": (2, 1), "then": (2, 1), "else": (1, 5)}
    assert equal.out == spread.out == (2, 5)


def test_the_same_seed_gives_the_same_data() -> None:
    one = case("numpy.where", [64], [64], [64], [64])
    first, second = (
        values.condition(one, "bool", (64,), np.random.default_rng(3)) for _ in range(2)
    )
    assert (first == second).all()
    assert 0 < first.sum() < 64


@pytest.mark.slow
@pytest.mark.skipif("TE_SELECT_CORPUS" not in os.environ, reason="TE_SELECT_CORPUS is not set")
def test_the_corpus_passes() -> None:
    files = sorted(Path(os.environ["TE_SELECT_CORPUS"]).glob("*.json"))
    assert files
    found = run_corpus(files)
    assert [r for r in found if r.status == "failed"] == []
    assert sum(r.status == "passed" for r in found) > len(found) // 2
