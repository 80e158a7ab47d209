"""A model from `compile.py`, run by TVM's runtime. te-select is not needed.

TVM_USE_RUNTIME_LIB=1 python examples/relax/run.py build/model.so
"""

import sys

import numpy as np
import tvm
from tvm.runtime.vm import VirtualMachine

if not sys.argv[1:]:
    raise SystemExit(__doc__)
model = VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
mask = np.tril(np.ones((2, 1, 64, 64), bool))
scores = np.arange(2 * 12 * 64 * 64, dtype=np.float32).reshape(2, 12, 64, 64)
masked = model["main"](tvm.runtime.tensor(mask), tvm.runtime.tensor(scores)).numpy()
assert np.array_equal(masked, np.where(mask, scores, np.float32(-1e9)))
print(masked.shape)
