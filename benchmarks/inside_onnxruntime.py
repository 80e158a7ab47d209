"""Measures Where inside ONNX Runtime: its own, and te-select's on the session's threads.

Run ``python benchmarks/inside_onnxruntime.py [--rounds N]``. Two sessions of one model take turns,
with inputs and outputs bound to memory. The last row runs two sessions of te-select at once, and
one after the other.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import te_select.onnxruntime
from te_select.timing.rounds import PAUSE, Timing, take_turns

THREADS = 2
ROUNDS = 31
ROWS = {  # shapes of cond, then and else, and how many times as fast ours is to be
    "mask over heads": ((1, 1, 512, 512), (4, 12, 512, 512), (), 15.0),
    "contiguous 4 M": ((1 << 22,), (1 << 22,), (1 << 22,), 30.0),
    "rows of 63": ((65536, 1), (65536, 63), (65536, 63), 8.0),
    "1,024 elements": ((1024,), (1024,), (1024,), 1.2),
}
HEADS, LENGTH, WIDTH = 12, 512, 64
ATTENTION, AT_ONCE = ("attention block 12x512x64", 1.3), ("two sessions at once", 1.0)


def model(nodes: Sequence[Any], inputs: Any, constants: Sequence[Any] = ()) -> bytes:
    """A model of float32 with the output ``out``; inputs by name, with type and shape."""
    infos = [helper.make_tensor_value_info(name, *about) for name, about in inputs.items()]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "graph", infos, [out], constants)
    opsets = [helper.make_opsetid("", 17)]
    made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    return made


def where(cond: Any, then: Any, else_: Any) -> tuple[bytes, dict[str, Any]]:
    """A model of one Where, and what it is fed."""
    rng = np.random.default_rng(0)
    fed = {
        "cond": rng.integers(2, size=cond, dtype=np.uint8).view(bool),
        "then": rng.random(then, np.float32),
        "else": np.asarray(rng.random(else_, np.float32)),
    }
    inputs = {
        name: (TensorProto.BOOL if name == "cond" else TensorProto.FLOAT, value.shape)
        for name, value in fed.items()
    }
    return model([helper.make_node("Where", [*fed], ["out"])], inputs), fed


def attention() -> tuple[bytes, dict[str, Any]]:
    """An attention block with a causal mask, and what it is fed."""
    rng = np.random.default_rng(0)
    of_heads = (1, HEADS, LENGTH, WIDTH)
    fed = {name: rng.random(of_heads, np.float32) for name in ("q", "k", "v")}
    fed["mask"] = np.tril(np.ones((LENGTH, LENGTH), bool))[None, None]
    inputs = {
        name: (TensorProto.BOOL if name == "mask" else TensorProto.FLOAT, value.shape)
        for name, value in fed.items()
    }
    constants = [
        numpy_helper.from_array(np.array(value, np.float32), name)
        for name, value in {"scale": WIDTH**-0.5, "least": np.finfo(np.float32).min}.items()
    ]
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["products"]),
        helper.make_node("Mul", ["products", "scale"], ["scores"]),
        helper.make_node("Where", ["mask", "scores", "least"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["out"]),
    ]
    return model(nodes, inputs, constants), fed


def call_of(proto: bytes, fed: dict[str, Any], *, ours: bool) -> tuple[Callable[[], object], Any]:
    """A call of a session whose inputs and output are bound, and the array of its output."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    if ours:
        te_select.onnxruntime.register(options)
    session = onnxruntime.InferenceSession(proto, options)
    (found,) = session.run(None, fed)
    out = onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(found))
    binding = session.io_binding()
    for name, value in fed.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
    binding.bind_ortvalue_output("out", out)

    def call() -> None:
        session.run_with_iobinding(binding)

    call()
    return call, out.numpy()


def compare(proto: bytes, fed: dict[str, Any], rounds: int) -> tuple[Timing, Timing]:
    """Times of ONNX Runtime's own Where and of ours."""
    before = te_select.onnxruntime.calls()
    (own, expected), (ours, found) = (call_of(proto, fed, ours=which) for which in (False, True))
    assert te_select.onnxruntime.calls() > before
    assert expected.tobytes() == found.tobytes()
    times = take_turns({"own": own, "ours": ours}, rounds, PAUSE)
    return times["own"], times["ours"]


def at_once(rounds: int) -> tuple[Timing, Timing]:
    """Times of two sessions of ours one after the other, and at once."""
    calls = [call_of(*attention(), ours=True)[0] for _ in range(2)]

    def in_turn() -> None:
        for call in calls:
            call()

    with ThreadPoolExecutor(2) as executor:

        def together() -> None:
            list(executor.map(lambda call: call(), calls))

        times = take_turns({"in turn": in_turn, "at once": together}, rounds, PAUSE)
    return times["in turn"], times["at once"]


def report(name: str, times: tuple[Timing, Timing], wanted: float) -> None:
    """Print a line: microseconds of both, the ratio of the rounds, and what it is to be."""
    slow, fast = times
    ratios = slow.ratios(fast)
    ratio = fast.ratio(slow)
    low, high = sorted(1 / ratios.quantile(q) for q in (0.25, 0.75))
    print(
        f"{name:28}{slow.median * 1e6:12.1f}{fast.median * 1e6:12.1f}"
        f"{ratio:9.2f} ({low:.2f} to {high:.2f}), wanted {wanted}",
        flush=True,
    )


def main() -> None:
    """Measure all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    print(f"onnxruntime {onnxruntime.__version__}, {THREADS} threads; microseconds a call")
    print(f"{'':28}{'its own':>12}{'te-select':>12}    ratio")
    for name, (cond, then, else_, wanted) in ROWS.items():
        report(name, compare(*where(cond, then, else_), rounds), wanted)
    name, wanted = ATTENTION
    report(name, compare(*attention(), rounds), wanted)
    name, wanted = AT_ONCE
    print(f"{'':28}{'in turn':>12}{'at once':>12}    ratio")
    report(name, at_once(rounds), wanted)


if __name__ == "__main__":
    main()
