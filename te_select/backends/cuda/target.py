"""Targets that are CUDA devices: ``cuda``, the GPUs of this machine, and architectures by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tvm.target import Target

from te_select.backends.cuda import compilers
from te_select.backends.targets import ResolvedTarget
from te_select.errors import TargetError
from te_select.operator.broadcast import shown
from te_select.runtime.call.cuda import driver

# The fields of a TVM target that are accepted.
FIELDS = (
    "kind",
    "arch",
    "keys",
    "tag",
    # Fields of TVM's own targets besides the arch; a Select depends on none of them.
    "max_num_threads",
    "max_shared_memory_per_block",
    "max_threads_per_block",
    "registers_per_block",
    "thread_warp_size",
)


@dataclass(frozen=True)
class CudaTarget(ResolvedTarget):
    """CUDA devices.

    Parameters
    ----------
    archs
        The architectures to make machine code for, oldest first.
    """

    kind: str = "cuda"
    archs: tuple[str, ...] = ()

    @property
    def records(self) -> str:
        """The name of the target's records: that of the newest architecture.

        A library for several architectures has one config. The newest architecture's PTX also
        serves later devices.
        """
        return f"cuda-{self.archs[-1]}"


def takes(text: str) -> bool:
    """Whether a name is that of CUDA devices."""
    return text.partition(":")[0] == "cuda"


def suggestions(text: str) -> list[str]:
    """The target of an architecture that is named alone."""
    return [f"cuda:{text}"] if _is_compilable(text) else []


def from_name(text: str) -> CudaTarget:
    """Resolve ``cuda`` and ``cuda:ARCH,...``."""
    if text == "cuda":
        return _of_archs({device.arch for device in _local_devices()})
    archs = {arch.strip() for arch in text.removeprefix("cuda:").split(",")}
    wrong = sorted(arch for arch in archs if not _is_compilable(arch))
    if wrong:
        raise TargetError(
            f"target {shown(text)} names the architecture {shown(wrong[0])}, which is not known; "
            f"expected {_known_archs()}"
        )
    return _of_archs(archs)


def from_fields(_fields: Mapping[str, Any], tvm_target: Target) -> CudaTarget:
    """Resolve a TVM target of kind cuda."""
    return from_name(f"cuda:{tvm_target.attrs.get('arch', '')}")


def check_fields(fields: Mapping[str, Any]) -> None:
    """Refuse a target without an architecture."""
    if not {"arch", "tag"} & set(fields):
        raise TargetError(f"target {shown(dict(fields))} has no arch; expected one such as sm_90")


def _of_archs(archs: Iterable[str]) -> CudaTarget:
    ordered = tuple(sorted(archs, key=compilers.number))
    tvm_target = Target({"kind": "cuda", "arch": ordered[-1]})
    return CudaTarget(f"cuda:{','.join(ordered)}", tvm_target, archs=ordered)


def _is_compilable(arch: str) -> bool:
    """Whether the CUDA compiler knows an architecture; without a compiler, any well-formed one."""
    known = compilers.archs()
    return arch in known if known else compilers.is_arch(arch)


def _known_archs() -> str:
    known = ", ".join(compilers.archs()) or "names such as sm_90"
    return f"{known}; several are a list, as in cuda:sm_80,sm_90"


def _local_devices() -> list[driver.Device]:
    hint = "to compile without it, name an architecture, such as cuda:sm_90"
    try:
        found = driver.devices()
    except driver.CudaError as error:
        raise TargetError(
            f"target 'cuda' is the GPU of this machine, which has none: {error}; {hint}"
        ) from error
    known = [device for device in found if _is_compilable(device.arch)]
    if not known:
        raise TargetError(
            f"target 'cuda' is {found[0].name} here, of architecture {found[0].arch}; expected "
            f"{_known_archs()}"
        )
    return known
