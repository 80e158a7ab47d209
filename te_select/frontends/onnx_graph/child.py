"""Infers the shapes of an ONNX model: what a process of its own runs, from stdin to stdout.

ONNX's inference is C++ that a hostile model can crash, or have take all memory: of a vector it
notes each element. So it runs here, within limits. Only onnx's extension is loaded, not the whole
package, which takes 8x the time.
"""

import resource
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec


def main(extension: str, most_bytes: int, most_seconds: int) -> None:
    """Infer within limits of memory and time; an error of onnx ends the process with status 1."""
    limits = (resource.RLIMIT_AS, most_bytes), (resource.RLIMIT_CPU, most_seconds)
    for limit, most in (*limits, (resource.RLIMIT_CORE, 0)):
        soft, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if soft < 0 else min(most, soft), hard))
    name = "onnx_cpp2py_export"
    loader = ExtensionFileLoader(name, extension)
    onnx = module_from_spec(ModuleSpec(name, loader, origin=extension))
    loader.exec_module(onnx)
    try:
        model = onnx.shape_inference.infer_shapes(sys.stdin.buffer.read(), False, False, True)
    except Exception as error:
        sys.exit(str(error) or type(error).__name__)
    sys.stdout.buffer.write(model)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
