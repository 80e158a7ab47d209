"""`te_select.runtime.call.device`: what the callers of both kinds of devices ask of operands."""

import numpy as np

from te_select.runtime.call.device import is_apart


def test_out_may_not_be_cond():
    cond, side = np.zeros((2, 4), bool)
    assert not is_apart(cond, [cond, side, side])
    assert is_apart(side, [cond, side, side]) and not is_apart(side, [cond, side[:2], side])
