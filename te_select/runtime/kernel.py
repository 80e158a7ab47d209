"""A kernel: what `compile` and `load` return, and what is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm_ffi

from te_select.broadcast import Shape
from te_select.errors import ArgumentError, ArtifactError, SelectError
from te_select.runtime import operands, outputs
from te_select.workload import Workload


class _Torch:
    """What a call needs of torch, once the program has imported it."""

    tensor: Any = None
    empty: Any = None
    mark_written: Any = None

    def find(self) -> None:
        """Look for torch, without importing it."""
        torch = sys.modules.get("torch")
        if torch is not None:
            self.tensor, self.empty = torch.Tensor, torch.empty
            self.mark_written = torch.autograd.graph.increment_version


_torch = _Torch()


class Kernel:
    """One compiled Select: ``out[i] = then[i] if cond[i] else else_[i]``, after broadcasting.

    Parameters
    ----------
    workload
        What it computes.
    target
        The name of the target it was compiled for.
    config
        The knobs of its schedule.
    origin
        Where the config comes from.
    function, bits
        The exported functions ``<name>`` and ``<name>__bits``.
    path
        The shared library that it was loaded from.
    exporter
        Writes the library and its manifest to another path.

    Attributes
    ----------
    function
        The exported function itself, ``function(cond, then, else_, out)``. It takes compact tensors
        of exactly the workload's shapes and types, and raises TypeError or ValueError. On tvm-ffi
        tensors it is the shortest way to run a kernel from Python.
    """

    workload: Workload
    target: str
    config: Mapping[str, Any]
    origin: str
    path: Path
    function: Callable[..., Any]

    def __init__(
        self,
        workload: Workload,
        *,
        target: str,
        config: Mapping[str, Any],
        origin: str,
        function: Callable[..., Any],
        bits: Callable[..., Any],
        path: Path,
        exporter: Callable[[str | os.PathLike[str]], Path],
    ) -> None:
        self.workload = workload
        self.target = target
        self.config = MappingProxyType(dict(config))
        self.origin = origin
        self.path = path
        self.function = function
        self._bits = bits
        self._exporter = exporter
        self._element = workload.element
        self._shapes = (workload.cond_shape, workload.then_shape, workload.else_shape)
        self._out_shape = workload.out_shape
        # None where NumPy cannot hand over the type itself: those arrays always go as bits.
        self._numpy_dtype = operands.builtin_dtype(workload.element)
        self._is_complex = workload.dtype.startswith("complex")
        self._sources = _sources(workload)
        self._static_shape = _static(workload.out_shape)

    def __call__(self, cond: Any, then: Any, else_: Any, out: Any = None) -> Any:
        """Select.

        Parameters
        ----------
        cond
            Boolean, of the workload's cond shape; any nonzero byte is true.
        then, else_
            Of the workload's shapes and element type. Any operand is a NumPy array, a torch or JAX
            tensor, anything else with ``__dlpack__``, or, where its rank is 0, a Python scalar.
        out
            Where to write, or None for a new tensor in the kind of then (of else_ where then is a
            scalar, of cond where both are).

        Returns
        -------
        Any
            ``out``, or the new tensor.

        Raises
        ------
        ArgumentError
            If a shape, device or layout is wrong, or ``out`` cannot be written.
        DTypeError
            If an element type is not exactly the workload's.
        """
        # First what the compiled code takes as it is. It checks everything before it writes, so
        # whatever it refuses can still be adapted, or be explained in the caller's terms.
        try:
            kind = type(then)
            if kind is not type(cond) or kind is not type(else_):
                pass
            elif kind is _torch.tensor:
                # DLPack drops a pending negation, and the conjugation of a complex tensor.
                if then.is_neg() or else_.is_neg() or self._is_complex:
                    pass
                elif out is None:
                    new = _torch.empty(self._shape_of(cond, then, else_), dtype=then.dtype)
                    self.function(cond, then, else_, new)
                    return new
                elif type(out) is kind and not (out.requires_grad or out.is_neg()):
                    self.function(cond, then, else_, out)
                    _torch.mark_written(out)
                    return out
            elif kind is np.ndarray:
                if self._numpy_dtype is not None:
                    if out is None:
                        out = np.empty(self._shape_of(cond, then, else_), self._numpy_dtype)
                    if type(out) is kind:
                        self.function(cond, then, else_, out)
                        return out
            elif type(out) is kind and isinstance(out, tvm_ffi.Tensor):
                self.function(cond, then, else_, out)
                return out
            elif _torch.tensor is None:
                _torch.find()
        except Exception:  # the path below finds out what it was
            pass
        return self._adapt(cond, then, else_, out)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the shared library and its manifest, atomically.

        Parameters
        ----------
        path
            Where to; ends in .so. The manifest goes beside it, ending in .json.

        Returns
        -------
        Path
            Where the library now lies.

        Raises
        ------
        ArtifactError
            If the path does not end in .so, or cannot be written.
        """
        return self._exporter(path)

    def source(self, kind: str) -> str:
        """The kernel's code at one level, rebuilt from its manifest.

        Parameters
        ----------
        kind
            ``"te"``, ``"tir"``, ``"scheduled"``, ``"llvm"``, ``"asm"``, ``"cuda"``, ``"ptx"`` or
            ``"sass"``.

        Returns
        -------
        str
            The code.

        Raises
        ------
        ArtifactError
            If the compiler is not installed, or the target has no such level.
        """
        try:
            compiler = importlib.import_module("te_select.compiler")
        except ImportError as error:
            raise ArtifactError(
                f"the source of a kernel is rebuilt by the compiler, which cannot be imported "
                f"({error}); install apache-tvm"
            ) from error
        text: str = compiler.source(self.workload, self.target, dict(self.config), kind)
        return text

    def __repr__(self) -> str:
        """The workload, the target and where the config comes from."""
        return f"Kernel({self.workload}, target {self.target!r}, {self.origin})"

    def _shape_of(self, cond: Any, then: Any, else_: Any) -> tuple[int, ...]:
        """Shape of the output for these inputs."""
        if self._static_shape is not None:
            return self._static_shape
        shapes = (cond.shape, then.shape, else_.shape)
        return tuple(
            source if isinstance(source, int) else shapes[source[0]][source[1]]
            for source in self._sources
        )

    def _adapt(self, cond: Any, then: Any, else_: Any, out: Any) -> Any:
        """Check the operands one by one, and call with views or copies of them."""
        try:
            inputs, target, finish = self._prepare(cond, then, else_, out)
            views, direct = _compact(inputs, target)
            written = target if direct else np.empty(target.shape, target.dtype)
        except SelectError:
            raise
        except Exception as error:  # of NumPy and of the operands' libraries, or no memory
            reason = str(error).strip().partition("\n")[0]
            raise ArgumentError(
                f"the operands cannot be used: {type(error).__name__}: {reason}"
            ) from error
        try:
            self._bits(*views, written)
        except (TypeError, ValueError) as error:
            raise ArgumentError(str(error)) from error
        if not direct:
            target[...] = written
        return finish()

    def _prepare(
        self, cond: Any, then: Any, else_: Any, out: Any
    ) -> tuple[list[npt.NDArray[Any]], npt.NDArray[Any], Callable[[], Any]]:
        """Views of the inputs and of the output, and what then gives the call's result."""
        element = self._element
        types = (operands.BOOL, element, element)
        sizes: dict[str, int] = {}
        views = [
            operands.describe(value, name, kind, shape, sizes).view
            for value, name, kind, shape in zip(
                (cond, then, else_), ("cond", "then", "else_"), types, self._shapes, strict=True
            )
        ]
        if out is None:
            inputs = (then, else_, cond)
            like = next((value for value in inputs if not operands.is_scalar(value)), None)
            extents = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self._out_shape)
            new, finish = outputs.allocate(like, element, extents)
            return views, operands.describe(new, "out", element, extents, sizes).view, finish
        if operands.is_scalar(out):
            raise ArgumentError(
                f"out is the scalar {operands.shown(out)}; expected a tensor that can be written"
            )
        target = operands.describe(out, "out", element, self._out_shape, sizes)
        outputs.check_writable(target, out)

        def finish_given() -> Any:
            outputs.mark_written(out)
            return out

        return views, target.view, finish_given


def _compact(
    inputs: list[npt.NDArray[Any]], target: npt.NDArray[Any]
) -> tuple[list[npt.NDArray[Any]], bool]:
    """Inputs as compact memory, and whether the kernel can write to the target itself."""
    direct = target.flags.c_contiguous
    views: list[npt.NDArray[Any]] = []
    for view in inputs:
        if not view.flags.c_contiguous:
            views.append(view.copy(order="C"))
            continue
        if np.may_share_memory(view, target) and (
            not views or not outputs.is_same_memory(view, target)
        ):
            direct = False  # only then and else may be out itself, and cond comes first
        views.append(view)
    return views, direct


def _static(shape: Shape) -> tuple[int, ...] | None:
    """A shape without names, or None."""
    extents = tuple(dim for dim in shape if isinstance(dim, int))
    return extents if len(extents) == len(shape) else None


def _sources(workload: Workload) -> tuple[int | tuple[int, int], ...]:
    """For every axis of out its extent, or the input (cond, then, else) and axis that has it."""
    shapes = (workload.cond_shape, workload.then_shape, workload.else_shape)
    places = {
        dim: (operand, axis)
        for operand, shape in enumerate(shapes)
        for axis, dim in enumerate(shape)
        if isinstance(dim, str)
    }
    return tuple(places[dim] if isinstance(dim, str) else dim for dim in workload.out_shape)
