"""The build worker without a CUDA compiler: everything is real except the machine code."""

from te_select.backends.cuda import compilers
from te_select.backends.cuda.compilers import CudaBinary
from te_select.tuning.measuring import build_worker


def compile_nothing(source, archs):
    return CudaBinary({arch: f"cubin {arch}".encode() for arch in archs}, f"ptx {archs[-1]}")


class Worker(build_worker.Worker):
    def __init__(self):
        super().__init__()
        compilers.compile_cuda = compile_nothing
