"""The kinds of machines: one record for each, with everything in which they differ.

A new kind of machine needs one record here, and a folder in each of ``schedules/``, ``backends/``,
``runtime/call/`` and ``runtime/c/``. Few other Python modules name a kind; a test lists them.

A record names code by a dotted path, which is imported only when it is used. So every package may
read this table, and the runtime half imports no compiler by it. A dotted path names a module
(``"te_select.backends.cpu.builder"``), or something in a module
(``"te_select.runtime.call.kernel:Kernel"``).
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from te_select.base import levels


@dataclass(frozen=True)
class Kind:
    """One kind of machine.

    Parameters
    ----------
    name
        The name under which manifests, targets and reports know it.
    tvm_kind
        The kind of its TVM targets.
    targets
        Examples of its targets, as a user may write them.
    target
        The module that reads a target (`te_select.backends.targets` lists its names).
    schedule
        The module of its schedule (`te_select.schedules.seam` lists its names).
    builder
        The module that builds libraries (`te_select.backends` lists its names).
    kernel
        The class of its kernels, a `te_select.runtime.call.kernel.Kernel`.
    sources
        The forms in which a kernel's code can be shown, from the definition downwards.
    requirements
        The fields of a manifest's ``target`` that say what a machine must have. Each is a string or
        a list of strings.
    by_machine
        The function that parts a list of targets by the machines that need a library each: a dict
        from what ``uname -m`` says there to a target. Empty if all of a list is one library.
    bench
        The class of the machine on which its bench meets: `te_select.bench.stage`.
    peers
        The peers that the bench knows.
    roof
        The function that measures the machine's bandwidth.
    place
        The class of the device on which the tuner checks and times kernels; empty if they run on
        the operands of a `te_select.tuning.measuring.run_worker.Problem` as they lie.
    environment
        The function that describes this machine for ``te-select env``, as sections of JSON types.
        It imports neither tvm nor tvm_ffi.
    source
        The function that shows the code of a kernel; imported where it is asked for, as only the
        compiler has it.
    with_numpy
        The class that calls a kernel with NumPy arrays; empty if kernels take them themselves.
    fleet
        Whether the machines of a fleet can measure it.
    family
        Whether its libraries can hold the family of kernels that serves operands of any shapes.
    profile
        The module that measures a profile, for kinds whose libraries decide by one; else empty.
    cached
        Whether `te_select.compile` keeps its libraries in the cache.
    c_functions
        Whether its libraries have plain C functions, and a header that declares them.
    in_models
        Whether TVM can link its kernels into the library of a model.
    c_stream
        The C type of the stream that these take; empty if they take none.
    """

    name: str
    tvm_kind: str
    targets: str
    target: str
    schedule: str
    builder: str
    kernel: str
    sources: tuple[str, ...]
    requirements: Mapping[str, type]
    bench: str
    peers: str
    roof: str
    environment: str
    source: str = "te_select.compiler.sources:source"
    place: str = ""
    by_machine: str = ""
    with_numpy: str = ""
    fleet: bool = False
    family: bool = False
    cached: bool = False
    profile: str = ""
    c_functions: bool = False
    in_models: bool = False
    c_stream: str = ""


# The kinds by name.
KINDS = {
    "cpu": Kind(
        name="cpu",
        tvm_kind="llvm",
        targets=(
            f"native, {', '.join(levels.NAMES)}, several of these with commas, an LLVM "
            "CPU name, aarch64, aarch64:neoverse-n1, riscv64, riscv64:rva23, llvm, llvm -mcpu=CPU"
        ),
        target="te_select.backends.cpu.target",
        schedule="te_select.schedules.cpu.schedule",
        builder="te_select.backends.cpu.builder",
        kernel="te_select.runtime.call.cpu.kernel:CpuKernel",
        sources=("te", "scheduled", "tir", "llvm", "asm"),
        requirements={"architecture": str, "cpu_features": list},
        bench="te_select.bench.stage:Stage",
        peers="te_select.bench.peers:PEERS",
        roof="te_select.timing.roof:bandwidth",
        environment="te_select.backends.cpu.environment:environment",
        by_machine="te_select.backends.cpu.target:by_machine",
        profile="te_select.tuning.calibrate",
        fleet=True,
        family=True,
        cached=True,
        c_functions=True,
        in_models=True,
    ),
    "cuda": Kind(
        name="cuda",
        tvm_kind="cuda",
        targets="cuda, cuda:sm_90, cuda:sm_80,sm_90",
        target="te_select.backends.cuda.target",
        schedule="te_select.schedules.cuda.schedule",
        builder="te_select.backends.cuda.builder",
        kernel="te_select.runtime.call.cuda.kernel:CudaKernel",
        sources=("te", "scheduled", "tir", "cuda", "ptx", "sass"),
        requirements={"archs": list},
        bench="te_select.bench.cuda.stage:CudaStage",
        peers="te_select.bench.cuda.peers:PEERS",
        roof="te_select.timing.cuda.roof:bandwidth",
        place="te_select.tuning.measuring.on_cuda:Cuda",
        environment="te_select.backends.cuda.compilers:environment",
        with_numpy="te_select.verify.cuda:OnDevice",
        c_functions=True,
        c_stream="struct CUstream_st*",  # cudaStream_t and CUstream, without a header of CUDA
    ),
}


def kind(name: str) -> Kind:
    """Find a kind by its name.

    Raises
    ------
    ValueError
        If there is no such kind.
    """
    if name not in KINDS:
        raise ValueError(f"kind is {name!r}, expected {' or '.join(KINDS)}")
    return KINDS[name]


def of_tvm(tvm_kind: str) -> Kind | None:
    """The kind whose TVM targets have this kind in TVM; None if there is none."""
    return next((each for each in KINDS.values() if each.tvm_kind == tvm_kind), None)


def sources() -> tuple[str, ...]:
    """Every form in which the code of some kind can be shown."""
    return tuple(dict.fromkeys(form for each in KINDS.values() for form in each.sources))


def load(path: str) -> Any:
    """Import what a dotted path of a record names."""
    module, _, name = path.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


def profiler() -> Any:
    """The module that measures the profile of this machine."""
    (path,) = (each.profile for each in KINDS.values() if each.profile)
    return load(path)
