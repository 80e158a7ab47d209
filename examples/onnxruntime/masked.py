"""ONNX Runtime runs an attention block, with Where by itself and by te-select.

python examples/onnxruntime/masked.py
"""

import time

import numpy as np

import te_select

try:
    import onnx
    import onnxruntime
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}; pip install onnx onnxruntime") from None

NODES = """
    products = MatMul (q, k)
    masked = Where (mask, products, least)
    weights = Softmax (masked)
    out = MatMul (weights, v)
"""
INPUTS = "bool[1,1,n,n] mask, float[1,12,n,64] q, float[1,12,64,n] k, float[1,12,n,64] v"
model = onnx.parser.parse_model(
    f'<ir_version: 8, opset_import: ["": 18]> attention ({INPUTS})'
    f" => (float[1,12,n,64] out) <float least = {{-1e9}}> {{{NODES}}}"
)
n = 512
rng = np.random.default_rng(0)
fed = {"q": (1, 12, n, 64), "k": (1, 12, 64, n), "v": (1, 12, n, 64)}
feeds = {name: rng.random(shape, np.float32) for name, shape in fed.items()}
feeds["mask"] = np.tril(np.ones((n, n), bool))[None, None]
found = {}
for who in ("ONNX Runtime", "te-select"):
    options = onnxruntime.SessionOptions()
    if who == "te-select":
        te_select.onnxruntime.register(options)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    found[who] = session.run(None, feeds)[0].tobytes()
    begin = time.perf_counter()
    session.run(None, feeds)
    print(f"Where by {who}: {(time.perf_counter() - begin) * 1e3:.1f} ms")
assert found["ONNX Runtime"] == found["te-select"]
print(f"equal bits; te-select was called {te_select.onnxruntime.calls()} times")
