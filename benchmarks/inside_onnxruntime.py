"""Measures Where inside ONNX Runtime: its own, and te-select's on the session's threads.

Run ``python benchmarks/inside_onnxruntime.py [--rounds N]``. Two sessions of one model take turns,
with inputs and outputs bound to memory.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime

import te_select.onnxruntime
from te_select.timing.rounds import PAUSE, Timing, take_turns

THREADS = 2
ROWS = {  # shapes of cond, then and else, and the speed-up that ours is to have
    "mask over heads": ((1, 1, 512, 512), (4, 12, 512, 512), (), 15.0),
    "contiguous 4 M": ((1 << 22,), (1 << 22,), (1 << 22,), 30.0),
    "rows of 63": ((65536, 1), (65536, 63), (65536, 63), 8.0),
    "1,024 elements": ((1024,), (1024,), (1024,), 1.2),
}
OF_HEADS = (1, 12, 512, 64)
BLOCK = """
    kt = Transpose <perm = [0, 1, 3, 2]> (k)
    products = MatMul (q, kt)
    scores = Mul (products, scale)
    masked = Where (mask, scores, least)
    weights = Softmax <axis = -1> (masked)
    out = MatMul (weights, v)
"""


def model(nodes: str, fed: dict[str, Any], constants: str = "") -> tuple[bytes, dict[str, Any]]:
    """A model of float32 with the output ``out``, and what it is fed."""
    inputs = (
        f"{'bool' if value.dtype == bool else 'float'}[{','.join(map(str, value.shape))}] {name}"
        for name, value in fed.items()
    )
    dims = ",".join("ijkl"[: max(value.ndim for value in fed.values())])
    graph = f"graph ({', '.join(inputs)}) => (float[{dims}] out) {constants} {{{nodes}}}"
    text = f'<ir_version: 9, opset_import: ["": 17]> {graph}'
    return onnx.parser.parse_model(text).SerializeToString(), fed


def where(*shapes: tuple[int, ...]) -> tuple[bytes, dict[str, Any]]:
    """A model of one Where, and what it is fed."""
    rng = np.random.default_rng(0)
    cond, *sides = (np.asarray(rng.random(shape, np.float32)) for shape in shapes)
    fed = {"cond": np.rint(cond) > 0, "then": sides[0], "else": sides[1]}
    return model("out = Where (cond, then, else)", fed)


def attention() -> tuple[bytes, dict[str, Any]]:
    """An attention block with a causal mask, and what it is fed."""
    rng = np.random.default_rng(0)
    fed: dict[str, Any] = {name: rng.random(OF_HEADS, np.float32) for name in ("q", "k", "v")}
    fed["mask"] = np.tril(np.ones((OF_HEADS[2],) * 2, bool))[None, None]
    return model(BLOCK, fed, "<float scale = {0.125}, float least = {-3.4028235e38}>")


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
    session.run_with_iobinding(binding)
    return lambda: session.run_with_iobinding(binding), out.numpy()


def compare(proto: bytes, fed: dict[str, Any], rounds: int) -> tuple[Timing, Timing]:
    """Times of ONNX Runtime's own Where and of ours."""
    before = te_select.onnxruntime.calls()
    (own, expected), (ours, found) = (call_of(proto, fed, ours=which) for which in (False, True))
    assert te_select.onnxruntime.calls() > before
    assert expected.tobytes() == found.tobytes()
    times = take_turns({"own": own, "ours": ours}, rounds, PAUSE)
    return times["own"], times["ours"]


def report(name: str, times: tuple[Timing, Timing], wanted: float) -> None:
    """Print a line: microseconds of both, the ratio of the rounds, and what it is to be."""
    slow, fast = times
    low, high = sorted(1 / slow.ratios(fast).quantile(q) for q in (0.25, 0.75))
    ratio = f"{fast.ratio(slow):9.2f} ({low:.2f} to {high:.2f}), wanted {wanted}"
    print(f"{name:28}{slow.median * 1e6:12.1f}{fast.median * 1e6:12.1f}{ratio}", flush=True)


def main() -> None:
    """Measure all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=31)
    rounds = parser.parse_args().rounds
    about = f"onnxruntime {onnxruntime.__version__}, {THREADS} threads, us"
    print(f"{about:28}{'its own':>12}{'te-select':>12}    ratio")
    for name, (*shapes, wanted) in ROWS.items():
        report(name, compare(*where(*shapes), rounds), wanted)
    report("attention block 12x512x64", compare(*attention(), rounds), 1.3)


if __name__ == "__main__":
    main()
