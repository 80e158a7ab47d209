"""A model compiled by TVM, with kernels of te-select in it, as one library.

python examples/relax/compile.py model.onnx build/model.so
"""

import sys
from pathlib import Path

try:
    import onnx
    from tvm import compile, target
    from tvm.relax.frontend.onnx import from_onnx

    import te_select.relax
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}; pip install onnx (te-select: by its wheel)") from None
if not sys.argv[2:]:
    raise SystemExit(__doc__)
cpu = target.Target({"kind": "llvm", "mcpu": "x86-64-v2"})
mod = from_onnx(onnx.load(sys.argv[1]))
mod = te_select.relax.UseSelect("x86-64-v2,x86-64-v3")(mod)  # of these, each CPU takes the best
for place, done, what in te_select.relax.report(mod):
    print(f"{place} is {done}: {what}")
Path(sys.argv[2]).parent.mkdir(parents=True, exist_ok=True)
compile(mod, cpu).export_library(sys.argv[2])
