"""ONNX Runtime runs a model up to its Where and from there on; a kernel runs the Where.

From Python, ONNX Runtime takes operators of one's own only as C++ libraries. So the model is cut:
    te-select compile --model model.onnx -o build/model.so
    python examples/onnxruntime/cut.py model.onnx build/model.so
"""

import sys

import numpy as np

import te_select

try:
    import onnx.utils
    import onnxruntime
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}; pip install onnx onnxruntime") from None
if not sys.argv[2:]:
    raise SystemExit(__doc__)
model = onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1]))
found = {node.output[0]: node for node in model.graph.node if node.op_type == "Where"}
where = found.popitem()[1] if len(found) == 1 else sys.exit(f"expected one Where, not {[*found]}")
kernel = te_select.load(sys.argv[2])
values = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
inputs = {each.name: each for each in model.graph.input if each.name not in values}
results = [each.name for each in model.graph.output]
rng = np.random.default_rng(0)
for name, value in inputs.items():
    extents = [dim.dim_value or 2 for dim in value.type.tensor_type.shape.dim]
    type_ = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    values[name] = rng.integers(0, 9, extents).astype(type_)


def run(part: onnx.ModelProto) -> None:
    """Run a model, and keep its outputs among the values."""
    session = onnxruntime.InferenceSession(part.SerializeToString())
    found = session.run(None, {each.name: values[each.name] for each in session.get_inputs()})
    values.update(zip((each.name for each in session.get_outputs()), found, strict=True))


run(model)
expected = [values.pop(name) for name in results]
cut, before = onnx.utils.Extractor(model), [name for name in where.input if name not in values]
run(cut.extract_model([*inputs], before))
values[where.output[0]] = kernel(*map(values.get, where.input))  # type: ignore[operator]  # a Kernel
run(cut.extract_model([*inputs, where.output[0]], results))
assert all(np.array_equal(values[name], old) for name, old in zip(results, expected, strict=True))
print(f"{values[where.output[0]].size} elements selected between two runs of ONNX Runtime")
