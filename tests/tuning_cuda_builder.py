"""The build worker without a CUDA compiler: all of a library but its machine code is real."""

from te_select import cuda_compiler
from te_select.cuda_compiler import CudaBinary
from te_select.tuning.measure import build_worker
from te_select.tuning.measure.serve import serve


def compile_nothing(source, archs):
    return CudaBinary({arch: f"cubin {arch}".encode() for arch in archs}, f"ptx {archs[-1]}")


if __name__ == "__main__":
    cuda_compiler.compile_cuda = compile_nothing
    serve({"build": build_worker.build}, build_worker.MEMORY)
