"""Tests of the checks of kernels against NumPy: a wrong kernel must be found."""

import ctypes
import math
import re
import time
from pathlib import Path
from signal import SIGBUS, raise_signal

import numpy as np
from pytest import approx, mark, raises

from te_select import ArgumentError, Workload
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.verify.checks import CHECKS
from te_select.verify.reference import bits, first_difference, placed
from te_select.verify.verify import MEMORY_LIMIT, dim_sizes, verify_kernel
from tests.support import flat, flat_and_scalar, masked_rows, shapes


class NumPyKernel:
    """A kernel that computes with NumPy, with a fault that ``spoil`` names."""

    path = Path("build/mask.so")

    def __init__(self, workload, spoil=None):
        self.workload = workload
        self.spoil = spoil

    def __call__(self, cond, then, else_, *, out=None):
        workload = self.workload
        if workload.dim_names:
            workload = Workload(cond.shape, then.shape, else_.shape, workload.dtype)
        views = placed(workload, cond, then, else_)
        mask = views[0].view(np.uint8) != 0
        words = [bits(view) for view in views[1:]]
        target = bits(out)
        target[...] = np.where(mask[..., None] if target.ndim > out.ndim else mask, *words)
        if self.spoil:
            self.spoil(cond, then, else_, out)
        return out


SMALL = Workload(*shapes("4,1,5 4,3,5 ()"))


def failed(kernel, seed=0):
    return {r.check for r in verify_kernel(kernel, seed) if not r.passed}


@mark.parametrize("dtype", ELEMENT_TYPES)
def test_every_element_type_passes_every_check(dtype):
    kernel = NumPyKernel(Workload(*shapes("4,1,5 4,3,5 1"), dtype))
    results = verify_kernel(kernel)
    assert [r.check for r in results] == list(CHECKS)
    assert all(r.passed for r in results), results


def test_one_wrong_element_is_found_with_its_index_and_bits():
    def spoil(_cond, _then, _else, out):
        bits(out)[3, 2, 4] ^= 1 << 31

    result = verify_kernel(NumPyKernel(SMALL, spoil), seed=7, checks=["all_false"])[0]
    assert not result.passed
    assert result.message.startswith("out[3,2,4] is 0x")
    got, expected = re.findall(r" 0x(\w+)", result.message)
    assert int(got, 16) ^ int(expected, 16) == 1 << 31
    assert result.command == (
        f"te-select verify build/mask.so --kernel {SMALL.name} --seed 7 --check all_false"
    )


@mark.parametrize("is_changed, to", [(np.isnan, np.nan), (lambda out: out == 0, 0)])
def test_a_quieted_nan_or_a_lost_negative_zero_is_found(is_changed, to):
    def spoil(_cond, _then, _else, out):
        out[is_changed(out)] = to

    assert "special" in failed(NumPyKernel(SMALL, spoil))


def test_truth_by_the_lowest_bit_is_found():
    def spoil(cond, then, else_, out):
        out[...] = np.where(cond.view(np.uint8) & 1, then, else_)

    assert failed(NumPyKernel(flat(64, "int32"), spoil)) == {"bytes"}


@mark.parametrize("past", [-1, 60 * 4])
def test_a_byte_written_outside_out_is_found(past):
    kernel = NumPyKernel(SMALL, lambda *arrays: ctypes.memset(arrays[3].ctypes.data + past, 0, 1))
    results = verify_kernel(kernel, checks=["random"])
    assert results[0].message == "bytes outside out were written"


def test_unwritten_elements_are_found():
    class Lazy(NumPyKernel):
        def __call__(self, cond, then, else_, *, out=None):
            return out

    assert failed(Lazy(SMALL)) == set(CHECKS) - {"bounds"}


def test_an_exception_of_the_kernel_is_a_failure():
    def spoil(*_):
        raise ValueError("no")

    results = verify_kernel(NumPyKernel(SMALL, spoil), checks=["random"])
    assert results[0].message == "ValueError: no"


def test_named_dims_run_at_each_size():
    kernel = NumPyKernel(masked_rows("batch", "width"))
    results = verify_kernel(kernel, checks=["random"])
    tried = [tuple(r.sizes.values()) for r in results]
    assert tried[:-2] == [(1, 1), (0, 1), (1, 7), (7, 16), (16, 33), (33, 65), (65, 511)]
    assert tried[-2:] == [(255, 156), (20_001, 0)]
    assert all(r.passed for r in results)


def test_named_dims_stay_within_the_memory_limit():
    workload = Workload(tuple("abcdefgh"), tuple("abcdefgh"), tuple("abcdefgh"), "float64")
    for sizes in dim_sizes(workload):
        assert math.prod(sizes.values()) * 25 <= MEMORY_LIMIT


def test_a_check_sees_the_same_data_alone_and_in_company():
    seen = []

    def spoil(cond, then, _else, _out):
        seen.append(cond.tobytes() + then.tobytes())

    kernel = NumPyKernel(SMALL, spoil)
    verify_kernel(kernel, 3)
    company = list(seen)
    seen.clear()
    verify_kernel(kernel, 3, ["misaligned"])
    before = list(CHECKS).index("misaligned")
    assert seen and seen == company[before : before + len(seen)]


def test_each_check_has_the_mask_that_it_is_named_for():
    masks = []
    kernel = NumPyKernel(
        flat_and_scalar(1 << 18, "int8"), lambda cond, *_: masks.append(cond.copy())
    )
    seen = {}
    for name in set(CHECKS) - {"bounds"}:
        verify_kernel(kernel, checks=[name])
        seen[name] = masks[-1].view(np.uint8)
    assert (seen["all_true"] == 1).all()
    assert not seen["all_false"].any()
    for name in ("random", "misaligned", "special"):
        assert set(seen[name]) == {0, 1}
        assert seen[name].mean() == approx(0.5, abs=0.01)
        assert np.count_nonzero(np.diff(seen[name])) == approx(1 << 17, rel=0.02)
    assert set(seen["bytes"]) == set(range(256))
    assert np.mean(seen["bytes"] == 0) == approx(0.5, abs=0.01)
    assert set(seen["blocked"]) == {0, 1}
    assert np.count_nonzero(np.diff(seen["blocked"])) < 1 << 9


def test_an_unknown_check_is_named():
    with raises(ArgumentError, match="'masks' does not exist; expected random, all_true"):
        verify_kernel(NumPyKernel(SMALL), checks=["masks"])


def places(workload):
    """Where the check of misaligned operands puts cond, then, else and out: bytes past a line."""
    found = set()

    def record(*arrays):
        found.add(tuple(a.ctypes.data % 64 for a in arrays))

    results = verify_kernel(NumPyKernel(workload, record), checks=["misaligned"])
    assert [r.message for r in results] == [""]
    return found


@mark.parametrize(
    "dtype, element",
    [("int8", 1), ("float16", 2), ("float32", 4), ("float64", 8), ("complex128", 8)],
)
def test_operands_are_misaligned_alone_and_together(dtype, element):
    found = places(flat(8, dtype))
    assert (3, 1, 5, element) in found  # the inputs off their elements
    half = 8 // element
    for k in (1, half):
        for alone in range(4):
            offsets = [0] * 4
            offsets[alone] = k * (element if alone else 1)
            assert tuple(offsets) in found
    for k in (1, 2, 4, 8, 13, 32):
        assert tuple(k * size % 64 for size in (1, element, element, element)) in found


def test_cond_of_one_element_is_both_true_and_false():
    seen = set()
    kernel = NumPyKernel(Workload((), (4,), ()), lambda cond, *_: seen.add(bool(cond)))
    verify_kernel(kernel, checks=["misaligned"])
    assert seen == {False, True}


def test_large_operands_are_put_at_fewer_places(monkeypatch):
    monkeypatch.setattr("te_select.verify.checks.MOVED_BYTES", 0)
    assert len(places(flat(8))) == 6


@mark.parametrize("operand", range(4))
@mark.parametrize("end, name", [(-1, "before"), (0, "behind")])
def test_memory_right_outside_an_operand_is_not_used(operand, end, name):
    def stray(*arrays):
        array = arrays[operand]
        if array.size > 6:
            ctypes.string_at(array.ctypes.data + (end or array.nbytes), 1)

    kernel = NumPyKernel(flat("n", "int16"), stray)
    (result,) = verify_kernel(kernel, checks=["bounds"])
    assert result.message == f"memory right {name} an operand was used (SIGSEGV)"
    assert result.sizes == {"n": 7}


def stop(*_):
    raise KeyboardInterrupt  # no Exception, as an error of the check's own would be


@mark.parametrize(
    "spoil, message",
    [
        (stop, "a process of its own ended with exit status 1"),
        (lambda *_: raise_signal(SIGBUS), "memory right before an operand was used (SIGBUS)"),
    ],
)
def test_process_that_ends_otherwise_is_told_and_does_not_go_on(spoil, message):
    (result,) = verify_kernel(NumPyKernel(SMALL, spoil), checks=["bounds"])
    assert result.message == message


@mark.parametrize("slow_children, passed", [(0, True), (1, True), (2, False)])
def test_child_that_does_not_end_is_tried_once_more(slow_children, passed, monkeypatch, tmp_path):
    """The child of a process with threads may wait for a lock that nobody will release."""
    begun = tmp_path / "begun"
    begun.touch()

    def be_slow(*_):
        with begun.open("a") as file:
            file.write("a child\n")
        if len(begun.read_text().splitlines()) <= slow_children:
            time.sleep(60)

    monkeypatch.setattr("te_select.verify.verify._PATIENCE", 1)
    monkeypatch.setattr("te_select.verify.verify._run_at_ends", be_slow)
    (result,) = verify_kernel(NumPyKernel(SMALL), checks=["bounds"])
    assert result.passed == passed
    assert result.message == ("" if passed else "a process of its own took longer than 1 s")


def test_kernel_that_works_on_copies_has_no_bounds():
    kernel = NumPyKernel(SMALL)
    kernel.copies = True  # type: ignore[attr-defined]
    assert "bounds" not in {r.check for r in verify_kernel(kernel)}


@mark.parametrize("side", ["then", "else_"])
def test_kernel_that_writes_a_side_before_it_reads_it_is_found(side):
    class Early(NumPyKernel):
        def __call__(self, cond, then, else_, *, out=None):
            if out is {"then": then, "else_": else_}[side]:
                out[...] = 0
            return super().__call__(cond, then, else_, out=out)

    kernel = Early(flat(64, "int32"))
    assert failed(kernel) == {"in_place"}
    (result,) = verify_kernel(kernel, checks=["in_place"])
    assert result.message.endswith(f"if out is {side} itself")


@mark.parametrize("shape", [(1, 5, 7), (3, 40), (200,), (2, 3, 4, 5)])
def test_a_difference_is_found_in_every_chunk(shape, monkeypatch):
    monkeypatch.setattr("te_select.verify.reference._CHUNK", 6)
    then = np.zeros(shape, np.int16)
    cond = np.ones(shape, np.bool_)
    for index in np.ndindex(*shape):
        out = then.copy()
        out[index] = 1
        message = first_difference(out, cond, then, then)
        place = ",".join(map(str, index))
        assert message == f"out[{place}] is 0x0001, NumPy selects 0x0000"
    assert not first_difference(then, cond, then, then)
