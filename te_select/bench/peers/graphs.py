"""Peers that run a graph of one node: ONNX Runtime and OpenVINO."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from te_select.bench.peers.base import Call, Peer, UnsupportedError, load
from te_select.operator.systems import TYPE_NAMES
from te_select.operator.workload import Workload
from te_select.timing.cores import threads
from te_select.timing.inputs import Operands
from te_select.verify.reference import Array

_INPUTS = ("cond", "then", "else_")


class OnnxRuntime(Peer):
    """ONNX Where with its inputs and its output bound to memory beforehand."""

    name = "onnxruntime"
    modules = ("onnx", "onnxruntime")
    install = "onnx onnxruntime"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        """Make the model, a session and a binding for each set."""
        onnx, runtime = load("onnx"), load("onnxruntime")
        kind = load("te_select.frontends.onnx_graph.nodes").NUMBERS[workload.dtype]
        kinds = (onnx.TensorProto.BOOL, kind, kind)
        info = onnx.helper.make_tensor_value_info
        shapes = [array.shape for array in sets[0].aligned()]
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node("Where", _INPUTS, ["out"])],
            "select",
            [info(*each) for each in zip(_INPUTS, kinds, shapes, strict=True)],
            [info("out", kind, sets[0].out.shape)],
        )
        model = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 16)], ir_version=8
        )
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads()
        options.log_severity_level = 4
        session = runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

        def bind(operands: Operands) -> Call:
            binding = session.io_binding()
            for name, onnx_kind, array in zip(_INPUTS, kinds, operands.aligned(), strict=True):
                binding.bind_input(name, "cpu", 0, onnx_kind, array.shape, array.ctypes.data)
            out = operands.out
            binding.bind_output("out", "cpu", 0, kind, out.shape, out.ctypes.data)
            return lambda: session.run_with_iobinding(binding)

        return [bind(operands) for operands in sets]


class OpenVino(Peer):
    """OpenVINO Select-1 on tensors that share the arrays' memory."""

    name = "openvino"
    modules = ("openvino",)
    install = "openvino"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        """Compile the model and make an infer request for each set."""
        openvino, operators = load("openvino"), load("openvino.opset1")
        if workload.dtype.startswith("complex"):
            raise UnsupportedError("has no complex types")
        kind = getattr(openvino.Type, _OPENVINO_NAMES.get(workload.dtype, workload.dtype))
        inputs = [
            operators.parameter(list(array.shape), each, name)
            for name, each, array in zip(
                _INPUTS, (openvino.Type.boolean, kind, kind), sets[0].aligned(), strict=True
            )
        ]
        model = openvino.Model([operators.select(*inputs, "numpy")], inputs, "select")
        compiled = openvino.Core().compile_model(
            model,
            "CPU",
            {
                "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_NUM_THREADS": str(threads()),
                # On CPUs with AMX it would compute float32 in bfloat16, and round.
                "INFERENCE_PRECISION_HINT": _PRECISION.get(workload.dtype, "f32"),
            },
        )

        def tensor(array: Array) -> Any:
            if array.dtype == np.bool_ or workload.dtype != "bfloat16":
                return openvino.Tensor(array, shared_memory=True)
            return openvino.Tensor(array.view(np.uint16), array.shape, kind)

        def bind(operands: Operands) -> Call:
            request = compiled.create_infer_request()
            for i, array in enumerate(operands.aligned()):
                request.set_input_tensor(i, tensor(array))
            request.set_output_tensor(0, tensor(operands.out))
            # `infer` of the Python layer copies the outputs it returns; these two do not.
            return lambda: (request.start_async(), request.wait())

        return [bind(operands) for operands in sets]


_PRECISION = {"float16": "f16", "bfloat16": "bf16"}
_OPENVINO_NAMES = {  # of several spellings, the first
    ours: theirs for theirs, ours in reversed(list(TYPE_NAMES["openvino"].items()))
}
