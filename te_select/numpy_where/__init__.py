"""`te_select.where`: numpy.where by a family of kernels for operands of any shapes."""

from te_select.numpy_where.call import Stats, Where, where
from te_select.numpy_where.explain import Explanation

__all__ = ["Explanation", "Stats", "Where", "where"]
