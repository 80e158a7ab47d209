"""What where() decides for a call whose cond is compared on the way."""

import ctypes

import numpy as np
import pytest

from tests.support import conditions
from tests.support.where_recorder import bits

KB = 1 << 10


def ints(*shape, most=9):
    return np.random.default_rng(3).integers(0, most, shape).astype("i4")


def two_arrays(n):
    a = ints(n)
    return a, a[::-1].copy()


def number(value=4):
    return np.array(value, "i4")


def new(*shape):
    return np.zeros(shape, "f4")


def sides(*shape):
    return bits(*shape), bits(*shape)[::-1].copy()


def blocks(found, elements):
    """The elements of each block of a call."""
    return [min(found.block, elements - at) for at in range(0, elements, found.block)]


def test_blocks_and_operands_fill_two_thirds_of_the_cache(alone):
    x, y = sides(90_000)
    a, b = two_arrays(90_000)
    of_two = ("less", a, b)
    for tree, x_of_call, per_element in (
        (of_two, x, 12 + 1 + 8),
        (of_two, a.view("f4"), 12 + 1 + 4),  # a is read once
        (("less", a, number()), x, 12 + 1 + 4),
        (("and", ("less", number(), a), ("less", a, b)), x, 12 + 3 + 8),
    ):
        found = alone.compared(tree, x_of_call, y, new(90_000))
        assert found.block == 2 * alone["l1"] // 3 // per_element // 64 * 64


def test_arrays_are_compared_in_place_and_a_block_at_once(alone):
    a, b = two_arrays(90_000)
    found = alone.compared(("less", a, b), *sides(90_000), new(90_000))
    notes = [each for each in found.asked if each.kernel == "less"]
    assert [each.n for each in notes] == blocks(found, 90_000)
    places = [a.ctypes.data + 4 * at for at in range(0, 90_000, found.block)]
    assert [each.data[0] for each in notes] == places


def test_number_is_a_row_of_512_that_is_made_once(alone):
    found = alone.compared(("less", number(), ints(9000)), *sides(9000), new(9000))
    notes = [each for each in found.asked if each.kernel == "less"]
    rest = {block % 512 for block in blocks(found, 9000)}
    assert {each.n for each in notes} <= {512, *rest}
    assert len({each.data[0] for each in notes}) == 1


def test_rows_and_what_is_strided_are_gathered_by_512(alone):
    a = ints(60, 100)
    for other in (ints(100), ints(60, 200)[:, ::2], ints(60, 1), ints(100, 60).T, a[::-1, ::-1]):
        found = alone.compared(("less", a, other), *sides(60, 100), new(60, 100))
        assert max(found.made("less")) <= 512
    found = alone.compared(("less", a[:1], ints(60, 100)), *sides(60, 100), new(60, 100))
    assert max(found.made("less")) <= 512


def test_long_rows_are_compared_in_place(alone):
    row = ints(700)
    found = alone.compared(("less", row, ints(9, 700)), *sides(9, 700), new(9, 700))
    notes = [each for each in found.asked if each.kernel == "less"]
    in_place = [row.ctypes.data <= each.data[0] < row.ctypes.data + 2800 for each in notes]
    assert sum(in_place) >= 9  # once a row at least


def test_steps_are_done_on_booleans_of_the_block(alone):
    a = ints(9000)
    less = ("less", a, number())
    equal = ("equal", number(7), a)
    tree = ("or", ("not", ("and", less, equal)), ("and", ("or", less, equal), ("not", equal)))
    found = alone.compared(tree, *sides(9000), new(9000))
    for name, count in (("and", 2), ("or", 2), ("not", 2)):
        assert found.made(name) == [n for n in blocks(found, 9000) for _ in range(count)]


def test_block_of_one_value_reads_one_side(alone):
    a = np.zeros(90_000, "i4")
    x, y = sides(90_000)
    asked = alone.compared(("less", a, number()), x, y, new(90_000)).asked
    assert {each.kernel for each in asked} == {"less", "w4 te"}
    assert {each.data[1] == each.data[2] for each in asked if each.kernel == "w4 te"} == {True}


def test_block_that_keeps_out_writes_nothing(alone):
    a = np.zeros(90_000, "i4")
    out = a.view("f4")
    found = alone.compared(("less", number(), a), np.zeros(1, "f4"), out, out)
    assert {each.kernel for each in found.asked} == {"less"}
    a[found.block] = 9
    changed = alone.compared(("less", number(), a), np.ones(1, "f4"), out, out).asked
    assert [each.n for each in changed if each.kernel == "w4 ce"] == [found.block]


@pytest.mark.parametrize("shape", [(1, 300), (200, 1), (1, 1)])
def test_condition_that_is_broadcast_is_compared_once(alone, shape):
    for a in (ints(*shape), ints(*shape)[::-1, ::-1]):
        found = alone.compared(("less", a, number()), *sides(200, 300), new(200, 300))
        assert found.made("less") == [shape[0] * shape[1]]
        assert found.block == 0
    assert alone["taken"] == alone["given_back"]


def test_row_of_half_the_second_level_cache_is_compared_again(alone):
    alone.compared(("less", number(), number()), *sides(1), new(1))
    n = alone["l2"] // 2
    a = ints(n + 1)
    x = np.zeros((2, n + 1), "u1")
    out = np.zeros((2, n + 1), "u1")
    once = alone.compared(("less", a[:n], number()), x[:, :n], x[:, 1:], out[:, :n])
    assert sum(once.made("less")) == n
    again = alone.compared(("less", a, number()), x, x, out)
    assert sum(again.made("less")) == 2 * (n + 1)


def test_bytes_of_operands_count_for_threads(where):
    recorder = where(bytes_per_thread=64 * KB)
    n = 16 * KB
    a, b = two_arrays(n)
    x, y = sides(n)
    for tree, x_of_call, words in (
        (("less", a, b), x, 5),
        (("less", a, number()), x, 4),
        (("less", a, number()), a.view("f4"), 3),
        (("and", ("less", a, b), ("less", b, a)), x, 5),
    ):
        recorder.compared(tree, x_of_call, y, new(n))
        assert recorder["wanted_threads"] == min(4, words)


def test_large_out_is_stored_past_the_cache(where):
    recorder = where(stream_per_thread=64 * KB, fill_per_thread=64 * KB)
    a = ints(90_000)
    found = recorder.compared(("less", a, number()), *sides(90_000), new(90_000))
    assert found.past_cache and not found.by_tiles
    assert {"stream"} == set.union(*(each.flags for each in found.asked if each.kernel == "w4 cte"))


def test_any_layout_of_out_and_operands(alone):
    for turn in (lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a.T[::-1, ::-1]):
        shape = turn(new(70, 130)).shape
        for of in (ints(70, 130), ints(130, 70).T, ints(70, 1), ints(130)):
            a = np.broadcast_to(of, (70, 130))
            tree = ("and", ("less", turn(a), number(7)), ("less", number(1), ints(*shape)))
            alone.compared(tree, *sides(*shape), turn(new(70, 130)))
    gaps = new(70, 200)[:, :130]
    alone.compared(("less", ints(70, 130), ints(130)), *sides(70, 130), gaps)
    cut = np.zeros((3, 40_001), "f4")[:, ::2]
    alone.compared(("less", ints(3, 20_001), number()), *sides(3, 20_001), cut)


def test_call_without_memory_or_with_a_failing_kernel(alone):
    x, y = sides(90_000)
    a = ints(90_000)
    tree = ("or", ("less", a, ints(90_000)), ("equal", a, number()))
    call, sources, condition = conditions.call(tree, x, y, new(90_000))
    place = ctypes.c_void_p.in_dll(alone._library, "condition_of_call")
    select = alone._library.select_recorded
    place.value = ctypes.addressof(condition)
    for name, value in (("is_short_of_memory", 1), ("fails", 1), ("fails", 3)):
        alone[name] = value
        assert select(ctypes.byref(call), 1, sources.kinds, None) == -3
        alone[name] = 0
        assert alone["taken"] == alone["given_back"]
    place.value = None
