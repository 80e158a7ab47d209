"""The exported functions of a library of where(), called through tvm-ffi."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi

from te_select.backends.cpu import link
from tests.support import c_half


def test_call_that_was_not_done_is_an_error(tmp_path):
    """A C++ program may not look at the result of a call."""
    path = c_half.build(tmp_path, "failing_where.c", link.FAMILY.sources, "-ldl")
    where = tvm_ffi.load_module(str(path)).get_function("te_select_where")
    x = np.ones(9, "f4")
    with pytest.raises(RuntimeError, match="there is no memory for tiles of out, or a kernel fail"):
        where(x > 0, x, x, np.empty(9, "f4"))
