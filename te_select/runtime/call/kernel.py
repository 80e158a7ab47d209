"""A kernel, as `compile` and `load` return it. Each kind of machine has its own class for calls."""

import abc
import ctypes
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from te_select.base import kinds
from te_select.errors import ArgumentError, ArtifactError, SelectError, caught
from te_select.operator.broadcast import shown
from te_select.operator.dtypes import numpy_dtype
from te_select.runtime.artifact import stored
from te_select.runtime.artifact.manifest import KernelRecord, Manifest
from te_select.runtime.call import operands, raised
from te_select.runtime.call.device import HOST, Device, Operand, Output
from te_select.runtime.call.torch_state import STATE as torch_state
from te_select.runtime.call.torch_state import check_unwatched

# The level that a library of several takes, instead of the best that the machine runs.
FORCED_LEVEL = "TE_SELECT_LEVEL"


class Kernel(abc.ABC):
    """One compiled Select: ``out[i] = then[i] if cond[i] else else_[i]``, after broadcasting.

    Parameters
    ----------
    record
        Its entry in the manifest.
    manifest
        The manifest of its library.
    path
        The shared library that it was loaded from.
    level
        The level of the library that this machine runs, or the target if there is one level.
    library
        The library; its bytes are kept, so that exporting does not depend on the file.
    packed
        Makes what pickle takes for the kernel: the bytes of its library.
    code
        The library as ctypes has opened it.
    in_effect
        What the library decides on this machine: names and values, in words.
    find
        Finds an exported function of the library by its name: ``<name>``, ``<name>__bits`` and
        ``<name>__try`` of the workload among them.

    Attributes
    ----------
    function
        The exported function itself, ``function(cond, then, else_, out)``. It takes compact tensors
        of exactly the workload's shapes and types, and raises TypeError or ValueError. On tvm-ffi
        tensors it is the fastest way to run a kernel from Python. It does not check for gradients,
        nor whether a library forbids writing to its tensors.
    """

    def __init__(  # noqa: PLR0913 - what a library is loaded from
        self,
        record: KernelRecord,
        manifest: Manifest,
        *,
        path: Path,
        level: str,
        library: stored.Stored,
        packed: Callable[[], tuple[Any, ...]],
        find: Callable[[str], Callable[..., Any]],
        code: ctypes.CDLL,
        in_effect: Mapping[str, str],
    ) -> None:
        workload = record.workload
        self.workload = workload
        self.target = manifest.target["name"]
        self.kind = manifest.kind.name
        self.level = level
        self._record = record
        self.levels = tuple(manifest.target.get("levels", (self.target,)))
        chosen = record.at(level)
        self.config = MappingProxyType(dict(chosen.config))
        self.origin = chosen.origin
        self.path = path
        self.function = find(workload.name)
        self.in_effect = in_effect
        self._find = find
        self._bits = find(f"{workload.name}__bits")
        # It returns True where it took the arguments, and raises nothing where it did not.
        self._try = find(f"{workload.name}__try")
        self._library = library
        self._manifest = manifest
        self._packed = packed
        self._code = code
        self._element = workload.element
        self._shapes = workload.shapes
        self._out_shape = workload.out_shape
        # None for types that NumPy cannot export through DLPack (bfloat16): passed as raw bits.
        self._numpy_dtype = numpy_dtype(workload.dtype) if workload.element.in_numpy else None
        self._is_complex = workload.dtype.startswith("complex")
        # For every axis of out its extent, or the input and axis that has it.
        self._sources: tuple[Any, ...] = tuple(
            workload.places.get(dim, dim) for dim in workload.out_shape
        )
        self._static_shape: Any = None if workload.dim_names else workload.out_shape

    @abc.abstractmethod
    def __call__(self, cond: Any, then: Any, else_: Any, out: Any = None) -> Any:
        """Select; see the class of the kind of machine."""

    @staticmethod
    def missing(_target: Mapping[str, Any]) -> list[str]:
        """What a manifest's ``target`` needs and this machine lacks; the code would crash here."""
        return []

    @staticmethod
    def calls_fail() -> str:
        """Why calls of a library that loads fail on this machine; empty if they do not."""
        return ""

    @staticmethod
    def level_here(target: Mapping[str, Any]) -> str:
        """The level that a library would choose on this machine, as `level_of` finds it later."""
        return str(target["name"])

    @staticmethod
    def level_of(target: Mapping[str, Any], _function: Callable[[str], Callable[..., Any]]) -> str:
        """The level that a library has chosen; the target's name if it has one level."""
        return str(target["name"])

    @staticmethod
    def prepare(_function: Callable[[str], Callable[..., Any]]) -> dict[str, str]:
        """Prepare a library that has just been loaded; its functions are found by their names.

        The result becomes `in_effect`.
        """
        return {}

    def plan(self) -> dict[str, int | bool]:
        """What is decided of a call on this machine before it is made; empty if nothing is known.

        Returns
        -------
        dict
            ``threads``, the most that a call runs on; ``stores_past_the_cache``; and
            ``looks_at_cond``, whether it may look at cond first, and leave a side unread.
        """
        return {}

    @property
    def origins(self) -> tuple[str, ...]:
        """The origin of the config of every level."""
        return tuple(self._record.at(level).origin for level in self.levels)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the shared library and its manifest, atomically.

        Parameters
        ----------
        path
            The path to write, which ends in .so. The manifest goes beside it and ends in .json.

        Returns
        -------
        Path
            The path of the new library.

        Raises
        ------
        ArtifactError
            If the path does not end in .so, or cannot be written.
        """
        return stored.write(self._library.alone(self._manifest), path)

    def source(self, form: str, level: str | None = None) -> str:
        """The kernel's code in one form, rebuilt from its manifest.

        Parameters
        ----------
        form
            ``"te"``, ``"tir"``, ``"scheduled"``, ``"llvm"``, ``"asm"``, ``"cuda"``, ``"ptx"`` or
            ``"sass"``.
        level
            One of the library's levels; None for the one that runs here.

        Returns
        -------
        str
            The code.

        Raises
        ------
        ArtifactError
            If the compiler is not installed.
        ArgumentError
            If the target has no such form, or the library no such level.
        """
        of_level = self.level if level is None else level
        if of_level not in self.levels:
            raise ArgumentError(
                f"level {shown(level)} is not in the library; expected {' or '.join(self.levels)}"
            )
        try:
            rebuilt = kinds.load(self._manifest.kind.source)
        except ImportError as error:
            raise ArtifactError(
                f"the source of a kernel is rebuilt by the compiler, which cannot be imported "
                f"({error}); install the wheel of te-select by its path, or a clone of it"
            ) from error
        config = dict(self._record.at(of_level).config)
        return str(rebuilt(self.workload, of_level, config, form))

    def __reduce__(self) -> tuple[Any, ...]:
        """The bytes of its library; the process that unpickles it loads them."""
        return self._packed()

    def __repr__(self) -> str:
        """The workload, the target and where the config comes from."""
        return f"Kernel({self.workload}, target {self.target!r}, {self.origin})"

    def _adapt(self, cond: Any, then: Any, else_: Any, out: Any) -> Any:
        """Check the operands one by one, and call with views or copies of them."""
        values = {"cond": cond, "then": then, "else_": else_, "out": out}
        torch_state.find()
        check_unwatched(values)
        try:
            device = self._device(values.values())
            shapes = (*self._shapes, self._out_shape)
            inputs, output = operands.prepared(values, self._element, shapes, device)
        except SelectError:
            raise
        except caught(Exception) as error:  # of the operands' libraries, or for lack of memory
            raise raised.of_operands(error) from error
        try:
            self._run(inputs, output, device)
            return output.finish()
        except caught(TypeError, ValueError) as error:
            if not raised.is_refusal(error):
                raise
            raise ArgumentError(str(error)) from error

    def _device(self, _values: Collection[Any]) -> Device:
        """Where the kernel runs that is called with these values."""
        return HOST

    def _run(self, inputs: list[Operand], output: Output, _device: Device) -> None:
        """Call the kernel with operands of the right form."""
        self._bits(*(each.value for each in inputs), output.value)

    def _shape_of(self, cond: Any, then: Any, else_: Any) -> tuple[int, ...]:
        """Shape of the output for these inputs."""
        shapes = (cond.shape, then.shape, else_.shape)
        return tuple(
            source if isinstance(source, int) else shapes[source[0]][source[1]]
            for source in self._sources
        )
