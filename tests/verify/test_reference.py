"""What NumPy selects, against the rules written down a second time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from te_select.operator.dtypes import ELEMENT_TYPES, numpy_dtype
from te_select.verify.reference import bits, first_difference, placed, special_bits
from tests.support import strategies as s


@given(s.workloads(), st.integers(0, 2**32 - 1))
def test_operands_are_placed_as_the_rule_says(workload, seed):
    rng = np.random.default_rng(seed)
    operands = s.operands(rng, workload)
    want = s.expected(workload, *operands)
    views = placed(workload, *operands)
    assert all(view.shape == workload.out_shape for view in views)
    out = np.frombuffer(want.tobytes(), operands[1].dtype).reshape(workload.out_shape)
    assert first_difference(out, *views) == ""
    if out.size:
        wrong = out.copy()
        flat = bits(wrong).reshape(-1)
        flat[seed % flat.size] ^= 1
        index = np.unravel_index(seed % flat.size * 8 // max(8, workload.element.width), out.shape)
        place = ",".join(str(int(i)) for i in index)
        assert first_difference(wrong, *views).startswith(f"out[{place}] is 0x")


@pytest.mark.parametrize("dtype", sorted(ELEMENT_TYPES))
def test_special_bits_hold_what_arithmetic_would_change(dtype):
    values = special_bits(dtype)
    kind = numpy_dtype(dtype)
    if kind.kind in "biu":
        width = kind.itemsize
        assert {0, (1 << 8 * width) - 1, 1 << 8 * width - 1} <= set(values.tolist())
        return
    parts = values.view(kind if kind.kind != "c" else f"f{kind.itemsize // 2}")
    with np.errstate(invalid="ignore"):
        numbers = parts.astype(np.float64)
    assert {False, True} == {bool(np.signbit(x)) for x in numbers if x == 0}
    nans = [int(v) for v, x in zip(values, numbers, strict=True) if np.isnan(x)]
    assert len(set(nans)) >= (2 if dtype == "float8_e4m3fn" else 6)
    finite = numbers[np.isfinite(numbers)]
    assert min(abs(finite[finite != 0])) < 1e-2
    if dtype != "float8_e4m3fn":  # float8_e4m3fn has no infinity
        assert {-np.inf, np.inf} <= set(numbers.tolist())
