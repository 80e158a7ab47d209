"""A kernel for CUDA devices: what `compile` and `load` return for a CUDA target."""

import struct
import sys
from collections.abc import Collection
from typing import Any

import tvm_ffi

from te_select.errors import ArtifactError, caught
from te_select.runtime.call import operands, raised
from te_select.runtime.call.cuda import driver
from te_select.runtime.call.cuda.device import CudaDevice
from te_select.runtime.call.cuda.driver import CudaError
from te_select.runtime.call.device import ON_HOST, Device, Operand, Output
from te_select.runtime.call.kernel import Kernel
from te_select.runtime.call.torch_state import STATE as torch_state
from te_select.runtime.call.torch_state import torch_dtype

_MOST_SCALARS = 64  # scalars kept as tensors; programs have few, and a loop over many must not grow


class CudaKernel(Kernel):
    """One Select compiled for CUDA devices.

    It is launched on the current stream of the tensors' library (torch, CuPy), or else on tvm-ffi's
    stream for the device. The call does not wait for it.
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
                    new = torch.empty(shape, dtype=torch_dtype(self._element), device=like.device)
                    if self._try(*inputs, new):
                        return new
                elif (
                    type(out) is torch.Tensor
                    and not (out.requires_grad or out.is_neg() or out.is_conj())
                    and self._try(*inputs, out)
                ):
                    torch_state.mark_written((out,))
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
            bits = operands.describe(value, name, element, self._shapes[k], {}).value
            dtype = torch_dtype(element)
            tensor = torch.from_numpy(bits.reshape(1).view("u1").copy()).view(dtype).reshape(())
            if len(kept) >= _MOST_SCALARS:
                kept.clear()
            kept[key] = tensor
        return tensor

    def _adapt(self, cond: Any, then: Any, else_: Any, out: Any) -> Any:
        try:
            return super()._adapt(cond, then, else_, out)
        except caught(CudaError, RuntimeError) as error:
            raise ArtifactError(str(error)) from error

    def _device(self, values: Collection[Any]) -> CudaDevice:
        return CudaDevice(values)

    def _run(self, inputs: list[Operand], output: Output, device: Device) -> None:
        """Launch the kernel, on a stream behind whatever has made its operands."""
        assert isinstance(device, CudaDevice)
        libraries = {output.library, *(each.library for each in inputs)} - {ON_HOST, "dlpack"}
        mixed = len(libraries) > 1  # each library orders its work on streams of its own
        if mixed:
            driver.synchronize(output.device)
        stream = device.launched_on
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", output.device), stream):
            super()._run(inputs, output, device)
        if mixed:
            driver.synchronize(output.device)
        elif "jax" in libraries:
            driver.synchronize(output.device, stream)
