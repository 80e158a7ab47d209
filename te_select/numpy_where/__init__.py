"""`te_select.where`: numpy.where by a family of kernels for operands of any shapes."""

from te_select.numpy_where.call import Stats, Where, where

__all__ = ["Stats", "Where", "where"]
