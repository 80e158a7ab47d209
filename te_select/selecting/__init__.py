"""`te_select.where`: numpy.where by a family of kernels for operands of any shapes.

`select`, `copyto` and `putmask` are numpy's, by the same kernels.
"""

from te_select.selecting.call import Stats, Where, where
from te_select.selecting.explain import Explanation
from te_select.selecting.numpy_functions import copyto, putmask, select

__all__ = ["Explanation", "Stats", "Where", "copyto", "putmask", "select", "where"]
