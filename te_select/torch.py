"""Select for PyTorch, with gradients: ``from te_select.torch import where``."""

from te_select.selecting.torch_operator import where

__all__ = ["where"]
