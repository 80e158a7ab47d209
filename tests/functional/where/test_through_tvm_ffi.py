"""Without the extension: the same results, warnings, errors and statistics."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import te_select
from te_select.functional.where import counts, through_ctypes, through_tvm_ffi
from te_select.functional.where.kernels import library
from tests.support.where_calls import HAS_EXTENSION, difference, filled, outcome, random_call

HERE = Path(__file__).parent
NO_EXTENSION = HERE.parents[1] / "support" / "no_extension"
FILES = ("test_call.py", "test_neighbours.py", "test_out.py", "kernels/test_library.py")
NOT_AGAIN = "not test_a_missing_entry_is_built_and_kept and not test_every_bit"


@pytest.mark.skipif(not HAS_EXTENSION, reason="all tests run without the extension")
@pytest.mark.slow
def test_the_same_tests_pass_without_the_extension():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-k", NOT_AGAIN, *(HERE / f for f in FILES)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(NO_EXTENSION), "TE_SELECT_RANDOM_CALLS": "400"},
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.skipif(not HAS_EXTENSION, reason="there is nothing to compare with")
def test_statistics_are_those_of_the_extension():
    from te_select.functional.where import numpy_rules
    from te_select.runtime import _extension

    def counted(function, arguments):
        before = total()
        outcome(function, arguments)
        return [one - other for one, other in zip(total(), before, strict=True)]

    def total():
        ours, theirs = counts.served(), _extension.counts()
        reasons = numpy_rules.left + type(numpy_rules.left)(theirs[3])
        names = ("arguments", "kind of operand", "element type", "promotion", "number", "shape")
        numbers = [one + other for one, other in zip(ours[:3], theirs[:3], strict=True)]
        return [*numbers, *(reasons[name] for name in (*names, "out", "no kernel"))]

    for number in range(300):
        arguments = random_call(np.random.default_rng([11, number]))
        found = counted(through_tvm_ffi.where, arguments)
        assert found == counted(te_select.where, arguments), number


@pytest.mark.parametrize("dtype", ["M8[s]", "S3", "V5", "f8"])
@pytest.mark.parametrize("is_read_only", [False, True])
def test_kernels_serve_what_dlpack_refuses(dtype, is_read_only):
    rng = np.random.default_rng(0)
    x, y = (filled(rng, (70,), np.dtype(dtype)) for _ in "ab")
    cond = rng.random(70) < 0.5
    for array in (cond, x, y):
        array.flags.writeable = not is_read_only
    calls = counts.served()[0]
    found = through_tvm_ffi.where(cond, x, y)
    assert difference((found, []), (np.where(cond, x, y), [])) is None
    assert counts.served()[0] == calls + 1


@pytest.mark.parametrize(
    ("shapes", "fits"),
    [
        (((6, 8), (6, 8), (6, 8)), True),
        (((8,), (6, 8), ()), True),
        (((6, 1), (1, 8), (8,)), True),
        (((1, 8), (8,), (1,)), False),  # they do not broadcast to so many rows
        (((6, 8), (6, 9), (6, 8)), False),
        (((1, 6, 8), (6, 8), (6, 8)), False),
    ],
)
def test_guessed_out_is_written_if_it_is_the_result(shapes, fits):
    assert library.fetch("w4")
    compact = library.function("te_select_where_compact")
    rng = np.random.default_rng(0)
    cond = rng.random(shapes[0]) < 0.5
    x, y = (rng.random(shape, np.float32) for shape in shapes[1:])
    out = np.zeros((6, 8), np.float32)
    assert (compact(cond, x, y, out) >= 0) == fits
    assert np.array_equal(out, np.where(cond, x, y)) if fits else not out.any()


def test_guess_is_refused_where_an_operand_is_not_in_c_order():
    assert library.fetch("w4")
    compact = library.function("te_select_where_compact")
    cond, x, out = np.ones((6, 6), bool), np.ones((6, 6), np.float32), np.zeros((6, 6), np.float32)
    for operands in ((cond.T, x, x, out), (cond, x[::-1], x, out), (cond, x, x, out.T)):
        assert compact(*operands) < 0 and not out.any()
    assert compact(cond[:, :1], x, 2.0, out) < 0
    assert compact(cond[:, :1].copy(), x, 2.0, out) >= 0 and (out == 1).all()
    assert compact(cond, x, x) < 0 and compact() < 0


@pytest.mark.parametrize("seed", range(40))
def test_overlaps_are_found_as_in_c(seed):
    """An out that Python lets through must be one that the C half takes through tvm-ffi."""
    rng = np.random.default_rng(seed)
    memory = np.zeros(400, np.uint8)
    shape = tuple(int(n) for n in rng.integers(1, 4, 2))

    def view():
        strides = [int(step) for step in rng.integers(-12, 13, 2)]
        return np.lib.stride_tricks.as_strided(
            memory[200 + int(rng.integers(0, 9)) :], shape, strides
        )

    assert library.fetch("w1")
    entry = library.function("te_select_where")
    for _ in range(50):
        out, x, y = view(), view(), view()
        x = out if rng.random() < 0.3 else x
        cond = np.zeros(shape, bool)
        try:
            entry(cond, x, y, out)
            refused = False
        except ValueError as error:
            assert "overlaps" in str(error)
            refused = True
        assert through_ctypes.overlaps((cond, x, y), out) == refused


@pytest.mark.parametrize("cond", [2**63, 2**70, -(2**64), 0])
def test_cond_may_be_a_large_int(cond):
    x = np.arange(4, dtype=np.float16)
    for sides in ((x, x + 1), (x, 3.0), (np.float16(1), x)):
        given = (cond, *sides)
        expected = outcome(np.where, given)
        assert difference(outcome(through_tvm_ffi.where, given), expected) is None


def test_metadata_of_an_element_type_does_not_reach_the_result():
    cond, plain = np.array([True, False]), np.ones(2, np.float32)
    x = plain.astype(np.dtype("f4", metadata={"of": "x"}))
    through_tvm_ffi.where(cond, plain, plain)  # now there is a function for the type
    for sides in ((x, x), (x, 1.0), (x, plain)):
        assert through_tvm_ffi.where(cond, *sides).dtype.metadata is None


def test_empty_results_are_left_to_numpy_whatever_their_extent():
    cond = np.ones((0, 1), bool)
    side = np.broadcast_to(np.float32(1), (1, 2**45))  # of no memory
    through_tvm_ffi.where(np.ones(2, bool), np.ones(2, "f4"), 0.0)
    calls = counts.served()[0]
    for given in ((cond, side, side), (cond, side, 0.0), (cond, cond.astype("f4"), 0.0)):
        found = through_tvm_ffi.where(*given)
        assert found.shape == np.where(*given).shape and found.dtype == np.float32
    assert counts.served()[0] == calls
