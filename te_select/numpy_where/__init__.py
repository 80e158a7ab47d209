"""`te_select.where`: numpy.where by a family of kernels for operands of any shapes.

`select`, `copyto` and `putmask` are numpy's, by the same kernels.
"""

from te_select.numpy_where.call import Stats, Where, where
from te_select.numpy_where.chain import select
from te_select.numpy_where.explain import Explanation
from te_select.numpy_where.in_place import copyto, putmask

__all__ = ["Explanation", "Stats", "Where", "copyto", "putmask", "select", "where"]
