"""A kernel for CPUs: what `compile` and `load` return for a CPU."""

import ctypes
import math
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tvm_ffi

from te_select.errors import ArgumentError, ArtifactError, caught
from te_select.operator.access import access_pattern
from te_select.operator.broadcast import shown
from te_select.runtime.call import capture, jax_memory, raised
from te_select.runtime.call.cpu import features
from te_select.runtime.call.cpu.decisions import Decisions
from te_select.runtime.call.cpu.profile import EXPECTED, Profile
from te_select.runtime.call.device import Device, Operand, Output
from te_select.runtime.call.extension import empty, extension
from te_select.runtime.call.kernel import FORCED_LEVEL, Kernel
from te_select.runtime.call.torch_state import STATE as torch_state

# Every call looks these up, and a name of the module is found faster than an attribute.
_ARRAY = np.ndarray
_TENSOR = tvm_ffi.Tensor
_empty = empty
_modules = sys.modules

extension.take_tensors(_TENSOR)

_IS_CAPTURED = capture.is_on()
_PROCESS = os.getpid()


class CpuKernel(Kernel):
    """One Select compiled for CPUs; see `Kernel`."""

    seen: Any = None  # what a capture saw of it
    unsampled = iter(range(0))  # one for each call that a capture only counts

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # The extension takes arrays, numbers and tensors of tvm-ffi in a third of `_try`'s time.
        self._entry = self._entry_to("__try")
        self._entry_of_bits = self._entry_to("__bits")

    def __call__(  # noqa: PLR0911, PLR0912 - the ways in, in one place: a call is a tenth
        self, cond: Any, then: Any, else_: Any, out: Any = None
    ) -> Any:
        """Select.

        Parameters
        ----------
        cond
            Booleans of the workload's cond shape; any nonzero byte is true.
        then, else_
            Tensors of the workload's shapes and element type. An operand is a NumPy array, a torch
            or JAX tensor, or anything else with ``__dlpack__``. An operand of rank 0 may also be a
            Python scalar.
        out
            The tensor to write, or None for a new one. A new one is of the same library as then; as
            else_ if then is a scalar, or as cond if both are.

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
        if _IS_CAPTURED and next(self.unsampled, None) is None:
            return capture.sampled(self, cond, then, else_, out)
        # The compiled code is tried first. It checks everything before it writes, so operands that
        # it refuses can still be adapted, or refused with a message about the caller's tensors.
        if type(out) is _ARRAY and self._entry(cond, then, else_, out):
            return out
        kind = type(then)
        if kind is type(cond) and kind is type(else_):
            try:
                if kind is _ARRAY:
                    if out is None and self._numpy_dtype is not None:
                        shape = self._static_shape or self._shape_of(cond, then, else_)
                        out = _empty(shape, self._numpy_dtype)
                        if self._entry(cond, then, else_, out):
                            return out
                elif issubclass(type(then), _TENSOR):  # or a class of tvm derived from it
                    if (
                        type(out) is kind
                        and ("jax" not in _modules or not jax_memory.holds(out))
                        and self._entry(cond, then, else_, out)
                    ):
                        return out
                elif kind is torch_state.tensor and not (
                    # DLPack drops a pending negation, and the conjugation of a complex tensor.
                    self._is_complex
                    or then.is_neg()
                    or else_.is_neg()
                    # If torch may be recording, `_adapt` decides.
                    or ((then.requires_grad or else_.requires_grad) and torch_state.records())
                    or torch_state.is_tracing()
                    or torch_state.active_modes()
                    or torch_state.forward_ad._current_level >= 0
                ):
                    if out is None:
                        shape = self._static_shape or self._shape_of(cond, then, else_)
                        new = torch_state.empty(shape, dtype=then.dtype)
                        if self._try(cond, then, else_, new):
                            return new
                    elif (
                        type(out) is kind
                        and not (out.requires_grad or out.is_neg())
                        and self._try(cond, then, else_, out)
                    ):
                        torch_state.mark_written((out,))
                        return out
            except caught(Exception) as error:
                if not (raised.is_refusal(error) or raised.is_of_allocation(error)):
                    raise  # from a signal handler, or from a kernel that has failed
        return self._adapt(cond, then, else_, out)

    def _entry_to(self, mode: str) -> Any:
        function = self._code[f"__tvm_ffi_{self.workload.name}{mode}"]
        return extension.entry(ctypes.cast(function, ctypes.c_void_p).value)

    def _run(self, inputs: list[Operand], output: Output, device: Device) -> None:
        # Calls by tvm-ffi in daemon threads abort a process whose interpreter ends.
        if not self._entry_of_bits(*(each.value for each in inputs), output.value):
            super()._run(inputs, output, device)

    @staticmethod
    def missing(target: Mapping[str, Any]) -> list[str]:
        """The CPU features that this machine's CPU lacks, or the instruction set."""
        return features.lacking(target["architecture"], target["cpu_features"])

    @staticmethod
    def level_here(target: Mapping[str, Any]) -> str:
        """The best level whose features this CPU has, or the one of ``TE_SELECT_LEVEL``.

        The target is one of which this CPU lacks nothing.

        Raises
        ------
        ArgumentError, ArtifactError
            As `level_of`.
        """
        if "levels" not in target:
            return str(target["name"])
        lacking = {name: features.missing(needed) for name, needed in target["levels"].items()}
        forced = os.environ.get(FORCED_LEVEL)
        if not forced:
            return str([name for name, missing in lacking.items() if not missing][-1])
        if forced not in lacking:
            expected = " or ".join(lacking)
            raise ArgumentError(f"{FORCED_LEVEL} is {shown(forced)}; expected {expected}")
        if lacking[forced]:
            raise ArtifactError(
                f"{FORCED_LEVEL} is {forced}, and this CPU lacks {', '.join(lacking[forced])}"
            )
        return forced

    @staticmethod
    def level_of(target: Mapping[str, Any], function: Callable[[str], Callable[..., Any]]) -> str:
        """The level that the library has chosen.

        Raises
        ------
        ArgumentError
            If ``TE_SELECT_LEVEL`` names a level that the library does not have.
        ArtifactError
            If this CPU runs none of them.
        """
        if "levels" not in target:
            return str(target["name"])
        try:
            return str(list(target["levels"])[function("te_select_level")()])
        except caught(ValueError) as error:
            raise ArgumentError(str(error)) from error
        except caught(RuntimeError) as error:
            raise ArtifactError(str(error)) from error

    @staticmethod
    def prepare(function: Callable[[str], Callable[..., Any]]) -> dict[str, str]:
        """Check the settings that every call would refuse, and make a forked child serial.

        Returns
        -------
        dict[str, str]
            What the library decides on this machine, in words.

        Raises
        ------
        ArgumentError
            If ``TE_SELECT_NUM_THREADS`` is not a positive whole number, or ``TE_SELECT_PROFILE`` no
            list of decisions.
        """
        if os.getpid() != _PROCESS:  # a library cannot know that the pool's threads have died
            function("te_select_run_serially")()
        profile = Profile.of_library(function)
        if profile.is_refused:
            more = f"; expected {EXPECTED}" if "PROFILE" in profile.problem else ""
            raise ArgumentError(profile.problem + more)
        return profile.in_effect | profile.advice

    def plan(self) -> dict[str, int | bool]:
        """See `Kernel.plan`. Nothing is known if dims have names."""
        if self._static_shape is None or 0 in self._static_shape:
            return {}
        cond, *others = (math.prod(map(int, shape)) for shape in (*self._shapes, self._out_shape))
        sizes = [cond, *(count * self._element.width for count in others)]
        told = Decisions.of(access_pattern(self.workload), self.config).numbers
        found = self._find("te_select_plan")(*sizes, others[-1], *told)
        return {
            "threads": found >> 2,
            "stores_past_the_cache": bool(found & 2),
            "looks_at_cond": bool(found & 1),
        }
