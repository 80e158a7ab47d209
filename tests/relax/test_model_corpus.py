"""The wheres of the reference corpus of ONNX files: replaced, or left with a reason; the bits."""

import numpy as np
import pytest
import tvm
from tvm import relax

from te_select.relax import UseSelect, replacing, report
from tests.support.models import corpus
from tests.support.relax_models import TARGET

onnx = pytest.importorskip("onnx")
CORPUS = corpus()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CORPUS is None, reason="TE_SELECT_MODELS is not set"),
]
FOLDER, INDEX = CORPUS or (None, [])
FILES = [entry for entry in INDEX if entry["kind"] == "onnx"]
WHERE = tvm.ir.Op.get("relax.where")


def imported(entry):
    from tvm.relax.frontend.onnx import from_onnx

    try:
        return from_onnx(onnx.load(FOLDER / entry["file"]), keep_params_in_input=False)
    except Exception as error:  # of any kind: TVM's importer raises whatever it stumbles over
        pytest.skip(f"TVM cannot import it: {type(error).__name__}")


def count(mod):
    found = []

    def visit(expression):
        if isinstance(expression, relax.Call) and expression.op.same_as(WHERE):
            found.append(expression)

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return len(found)


def feeds(run, params):
    """Random values for the inputs of a run of the index."""
    rng = np.random.default_rng(0)
    made = []
    for param in params:
        shape = run["feeds"][param]["shape"]
        elem = run["feeds"][param]["elem"]
        values = rng.random(shape) * 2  # an index or a token is 0 or 1
        made.append(tvm.runtime.tensor(np.asarray(values.astype(elem))))
    return made


def outputs(mod, run):
    """The bytes of what a module computes, or None if TVM cannot compile or run it."""
    try:
        vm = relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu())
        out = vm["main"](*feeds(run, [param.name for param in mod["main"].params]))
    except Exception:  # of any kind, as above
        return None
    return [each.numpy().tobytes() for each in ([out] if hasattr(out, "numpy") else out)]


@pytest.mark.parametrize("entry", FILES, ids=lambda entry: entry["file"])
def test_model_keeps_its_bits_and_each_where_is_decided(entry, monkeypatch):
    monkeypatch.setattr(replacing, "SMALL", 1)  # so that small ones are tried as well
    mod = imported(entry)
    made = UseSelect(TARGET, tuning_logs=False)(mod)
    rows = report(made)
    assert len(rows) == count(mod)
    left = [what for _, done, what in rows if done == "left"]
    assert all(left) and count(made) == len(left)
    assert len({place for place, _, _ in rows}) == len(rows)
    for run in entry["runs"][:1]:
        before = outputs(mod, run)
        if before is None:
            pytest.skip("TVM cannot compile or run it")
        assert outputs(made, run) == before
