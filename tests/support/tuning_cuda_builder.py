"""The build worker without a CUDA compiler: everything is real except the machine code."""

from te_select.machines.cuda import compilers
from te_select.machines.cuda.compilers import CudaBinary
from te_select.tuning.measuring import build_worker
from te_select.tuning.measuring.serve import serve


def compile_nothing(source, archs):
    return CudaBinary({arch: f"cubin {arch}".encode() for arch in archs}, f"ptx {archs[-1]}")


if __name__ == "__main__":
    compilers.compile_cuda = compile_nothing
    serve({"build": build_worker.build}, build_worker.MEMORY)
