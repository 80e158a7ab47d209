"""The toy's kernels take NumPy arrays."""

import sys

import numpy as np

from te_select.errors import ArgumentError
from te_select.runtime.call.kernel import Kernel


class ToyKernel(Kernel):
    def __call__(self, cond, then, else_, out=None):
        arrays = [np.asarray(value, order="C") for value in (cond, then, else_)]
        if out is None:
            out = np.empty(self._shape_of(*arrays), arrays[1].dtype)
        views = [
            array if array.dtype.isbuiltin == 1 else array.view(f"V{array.dtype.itemsize}")
            for array in (*arrays, out)
        ]
        try:
            self._bits(*views)
        except (TypeError, ValueError) as error:
            raise ArgumentError(str(error)) from error
        return out

    @staticmethod
    def missing(target):
        return sorted(set(target["byte_orders"]) - {sys.byteorder})
