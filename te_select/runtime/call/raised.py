"""Where an exception comes from: a kernel's refusal, a failed conversion, or somewhere else.

A call first passes its arguments to the compiled code unchanged. If the code refuses them, the call
adapts them.
"""

from te_select.errors import ArgumentError

_CONVERSIONS = "tvm_ffi/cython/"  # in the names of the files where tvm-ffi converts arguments


def is_refusal(error: Exception) -> bool:
    """Whether compiled code of ours refused the arguments, or tvm-ffi could not convert them."""
    if hasattr(error, "__tvm_ffi_error__"):
        return isinstance(error, (TypeError, ValueError))  # other types: the kernel itself failed
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and _CONVERSIONS in traceback.tb_frame.f_code.co_filename


def is_of_allocation(error: Exception) -> bool:
    """Whether an output could not be made: NumPy or torch raised it directly in the call's code."""
    alone = error.__traceback__ is not None and error.__traceback__.tb_next is None
    return alone and isinstance(error, (MemoryError, RuntimeError, ValueError))


def of_operands(error: Exception) -> ArgumentError:
    """The error of a call whose operands cannot be used, because their library raised another."""
    reason = str(error).strip().partition("\n")[0]
    return ArgumentError(f"the operands cannot be used: {type(error).__name__}: {reason}")
