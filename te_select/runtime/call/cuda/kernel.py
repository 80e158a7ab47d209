"""A kernel for CUDA devices: what `compile` and `load` return for a CUDA target."""

from __future__ import annotations

import struct
import sys
from typing import Any

import tvm_ffi

from te_select.errors import ArgumentError, ArtifactError, SelectError, caught
from te_select.operator.broadcast import shown
from te_select.runtime.call import operands, outputs, raised
from te_select.runtime.call.cuda import driver
from te_select.runtime.call.cuda import operands as device_operands
from te_select.runtime.call.cuda import outputs as device_outputs
from te_select.runtime.call.cuda.driver import CudaError
from te_select.runtime.call.cuda.operands import DeviceOperand
from te_select.runtime.call.cuda.outputs import Output
from te_select.runtime.call.kernel import Kernel
from te_select.runtime.call.torch_state import STATE as torch_state
from te_select.runtime.call.torch_state import check_unwatched

_MOST_SCALARS = 64  # scalars kept as tensors; programs have few, and a loop over many must not grow


class CudaKernel(Kernel):
    """One Select compiled for CUDA devices.

    It is launched on the current stream of the library whose tensors are passed (torch, CuPy), or
    otherwise on the stream that tvm-ffi was given for the device. The call does not wait for it.
    All tensors are on one CUDA device. Operands of rank 0 may be scalars or in memory of the CPU.
    See `Kernel` for the rest.
    """

    def __call__(self, cond: Any, then: Any, else_: Any, out: Any = None) -> Any:
        """Select, on the device.

        Parameters
        ----------
        cond
            Boolean, of the workload's cond shape; any nonzero byte is true.
        then, else_
            Of the workload's shapes and element type. Any operand is a torch, CuPy or JAX tensor on
            a CUDA device, or anything else with ``__dlpack__``. An operand of rank 0 may also be a
            scalar or in memory of the CPU.
        out
            Where to write, or None for a new tensor in the kind of then. If then is not on the
            device, it is in the kind of else_; if neither is, in the kind of cond.

        Returns
        -------
        Any
            ``out``, or the new tensor. A JAX array is complete. The others are complete when the
            work of the stream is.

        Raises
        ------
        ArgumentError
            If a shape, device or layout is wrong, or ``out`` cannot be written.
        DTypeError
            If an element type is not exactly the workload's.
        ArtifactError
            If there is no driver, or the library holds no code for the device.
        """
        # The compiled code checks everything before it launches, as on a CPU.
        try:
            alike = type(then) is type(cond) is type(else_) is type(out)
            if alike and isinstance(out, tvm_ffi.Tensor) and self._try(cond, then, else_, out):
                return out
            inputs = self._torch_inputs(cond, then, else_)
            if inputs is not None:
                torch = sys.modules["torch"]
                tensors = (each for each in (then, else_, cond) if type(each) is torch.Tensor)
                like = next(tensors, None)
                if out is None and like is not None:
                    shape = self._static_shape or self._shape_of(*inputs)
                    new = torch.empty(
                        shape, dtype=getattr(torch, self._element.name), device=like.device
                    )
                    if self._try(*inputs, new):
                        return new
                elif (
                    type(out) is torch.Tensor
                    and not (out.requires_grad or out.is_neg() or out.is_conj())
                    and self._try(*inputs, out)
                ):
                    outputs.mark_written(out)
                    return out
        except caught(Exception) as error:
            if not (raised.is_refusal(error) or raised.is_of_allocation(error)):
                if hasattr(error, "__tvm_ffi_error__"):  # the driver's, or of the launch
                    raise ArtifactError(str(error)) from error
                raise  # of a signal handler
        return self._adapt(cond, then, else_, out)

    @staticmethod
    def calls_fail() -> str:
        """That there is no driver or no device."""
        return driver.missing()

    def _torch_inputs(self, *values: Any) -> list[Any] | None:
        """Plain torch tensors unchanged and Python scalars as kept tensors; None for others."""
        torch = sys.modules.get("torch")
        if torch is None:
            return None
        torch_state.find()
        inputs = []
        for k, value in enumerate(values):
            if type(value) is torch.Tensor:
                if value.is_neg() or value.is_conj():  # DLPack would drop these marks
                    return None
                inputs.append(value)
            elif type(value) in (float, int, bool):
                inputs.append(self._kept_scalar(torch, k, value))
            else:
                return None
        return None if torch_state.may_watch(*inputs) else inputs

    def _kept_scalar(self, torch: Any, k: int, value: Any) -> Any:
        """A scalar as a torch tensor in memory of the CPU, made once."""
        kept = self.__dict__.setdefault("_scalars", {})
        # Equal floats may differ in bits (0.0 and -0.0), and NaNs in their payload.
        same = struct.pack("d", value) if type(value) is float else value
        key = (k, type(value), same)
        tensor = kept.get(key)
        if tensor is None:
            element = self._element if k else operands.BOOL
            name = ("cond", "then", "else_")[k]
            bits = operands.describe(value, name, element, self._shapes[k], {}).view
            dtype = getattr(torch, element.name)
            tensor = torch.from_numpy(bits.reshape(1).view("u1").copy()).view(dtype).reshape(())
            if len(kept) >= _MOST_SCALARS:
                kept.clear()
            kept[key] = tensor
        return tensor

    def _adapt(self, cond: Any, then: Any, else_: Any, out: Any) -> Any:
        """Check the operands one by one, and call with tensors of tvm-ffi or copies."""
        values = (cond, then, else_)
        check_unwatched({"cond": cond, "then": then, "else_": else_, "out": out})
        try:
            stream = device_operands.current_stream((*values, out))
            inputs, output, device = self._described(values, out, stream)
        except SelectError:
            raise
        except caught(Exception) as error:  # an error of the operands' libraries, or no memory
            raise raised.of_operands(error) from error
        try:
            self._launch(inputs, output, device, stream)
            return output.finish()
        except caught(CudaError, RuntimeError) as error:
            raise ArtifactError(str(error)) from error
        except caught(Exception) as error:
            if raised.is_refusal(error):
                raise ArgumentError(str(error)) from error
            raise

    def _launch(
        self, inputs: list[DeviceOperand], output: Output, device: int, stream: int
    ) -> None:
        libraries = {output.library, *(each.library for each in inputs)} - {"host", "dlpack"}
        mixed = len(libraries) > 1  # each library orders its work on streams of its own
        if mixed:
            driver.synchronize(device)
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", device), stream):
            self._bits(*(operand.value for operand in inputs), output.value)
        if mixed:
            driver.synchronize(device)
        elif "jax" in libraries:
            driver.synchronize(device, stream)

    def _described(
        self, values: tuple[Any, ...], out: Any, stream: int
    ) -> tuple[list[DeviceOperand], Output, int]:
        element = self._element
        types = (operands.BOOL, element, element)
        names = ("cond", "then", "else_")
        sizes: dict[str, int] = {}
        inputs = [
            device_operands.describe(value, name, kind, shape, sizes, stream)
            for value, name, kind, shape in zip(values, names, types, self._shapes, strict=True)
        ]
        there = [k for k in (1, 2, 0) if inputs[k].library != "host"]
        if out is None:
            if not there:
                raise ArgumentError(
                    "no operand is on a CUDA device, so out cannot be allocated; pass out"
                )
            like = there[0]
            extents = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self._out_shape)
            output = device_outputs.allocate(values[like], inputs[like], element, extents, stream)
            device = inputs[like].device
        else:
            if operands.is_scalar(out):
                raise ArgumentError(
                    f"out is the scalar {shown(out)}; expected a tensor on a CUDA device"
                )
            target = device_operands.describe(out, "out", element, self._out_shape, sizes, stream)
            output = device_outputs.given(out, target, inputs, element.width, stream)
            device = target.device
        for k in there:
            if inputs[k].device != device:
                raise ArgumentError(
                    f"{names[k]} is on CUDA device {inputs[k].device}, and out on {device}; "
                    "expected one device"
                )
        return inputs, output, device
