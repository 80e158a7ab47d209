"""Select for PyTorch, with gradients: ``from te_select.torch import where``."""

from te_select.errors import NotInstalledError

try:
    from te_select.numpy_where.torch_operator import where
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise NotInstalledError(
        "te_select.torch needs torch, which is not installed; pip install torch"
    ) from error

__all__ = ["where"]
