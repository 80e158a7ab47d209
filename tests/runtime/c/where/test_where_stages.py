"""What where() decides for a call whose operands are converted on the way."""

import platform

import numpy as np
from pytest import mark, raises

from tests.support.where_recorder import NEVER, bits, mask

KB = 1 << 10
ROUNDING = 0x6000  # bits of MXCSR


def numbers(*shape, dtype="u1"):
    return np.random.default_rng(2).integers(0, 200, shape).astype(dtype)


def new(*shape):
    return np.zeros(shape, "f4")


def compact(n):
    """Operands of which x is converted."""
    return mask(n), numbers(n), bits(n), new(n)


def test_blocks_and_what_is_made_fill_two_thirds_of_the_cache(alone):
    for cond, x, per_element in (
        (mask(90_000), numbers(90_000), 1 + 1 + 4 + 4 + 4),
        (numbers(90_000, dtype="i4") // 90, numbers(90_000), 4 + 1 + 1 + 4 + 4 + 4),
    ):
        found = alone.staged(cond, x, bits(90_000), new(90_000))
        most = 2 * alone["l1"] // 3 // per_element
        assert found.block == most // 64 * 64
        assert set(found.made("uint8")) == {found.block, 90_000 % found.block}
        assert sum(found.made("uint8")) == 90_000


@mark.parametrize("dtype", ["?", "D"])
@mark.parametrize("gap", [1, 3])
@mark.parametrize("rows", [1, 40])
@mark.parametrize("l1", [16 * KB, 32 * KB, 48 * KB])
def test_tiles_of_each_width_fit_in_each_cache(alone, l1, rows, gap, dtype):
    """An element is read, and with gaps it is copied."""
    alone["l1"] = l1
    cond = numbers(rows, 9991 * gap, dtype="i4") // 90
    x = (cond == 1).astype(dtype)
    found = alone.staged(*(each[:, : 9990 * gap : gap] for each in (cond, x, x, np.zeros_like(x))))
    per_element = 4 + 1 + 3 * x.itemsize * (1 if gap == 1 else 2)
    tiles = found.made("int32")
    assert 0 < max(tiles) <= found.block and sum(tiles) == rows * 9990
    assert found.block * per_element <= 2 * l1 // 3 < 3 * found.block * per_element


def test_side_that_no_cond_of_a_block_selects_is_not_converted(alone):
    x = numbers(90_000)
    cond = np.zeros(90_000, bool)
    block = alone.staged(cond, x, bits(90_000), new(90_000)).block
    cond[3 * block : 4 * block + 1] = True
    assert alone.staged(cond, x, bits(90_000), new(90_000)).made("uint8") == 2 * [block]
    assert alone.staged(~cond, bits(90_000), x, new(90_000)).made("uint8") == 2 * [block]


def test_cond_of_rows_far_apart_is_not_taken_for_one_value(alone):
    cond = np.ones(200 * 5000, bool)
    cond[5000::10_000] = False
    alone.staged(cond[::5000, None], numbers(200, 64), bits(200, 64), new(200, 64))


@mark.parametrize("shape", [(1, 300), (200, 1), (1, 1)])
def test_what_is_broadcast_is_converted_once(alone, shape):
    found = alone.staged(mask(200, 300), numbers(*shape), bits(200, 300), new(200, 300))
    assert found.made("uint8") == [shape[0] * shape[1]]
    assert alone["taken"] - alone["given_back"] == 0


def test_row_of_half_the_second_level_cache_is_converted_again(alone):
    alone.staged(mask(1), numbers(1), bits(1), new(1))
    n = alone["l2"] // 2 // 4
    x = numbers(n + 1)
    assert alone.staged(mask(2, n), x[:n], bits(2, n), new(2, n)).made("uint8") == [n]
    found = alone.staged(mask(2, n + 1), x, bits(2, n + 1), new(2, n + 1)).made("uint8")
    assert sum(found) == 2 * (n + 1)


def test_strided_items_are_gathered_and_out_is_not_copied(alone):
    found = alone.staged(mask(1000), numbers(3000)[::-3], bits(1000), new(1000))
    assert not found.by_tiles
    assert found.made("uint8") == [256, 256, 256, 232]
    asked = [each for each in found.asked if not each.kernel.startswith("stage")]
    assert {each.kernel for each in asked} == {"w4 cte"}


def test_blocks_of_bits_alone_are_four_times_as_large(alone):
    x = bits(90_000)
    places = np.arange(90_000)
    for side, times, made in ((x, 4, 0), (bits(180_000)[::2], 1, 4), (numbers(90_000), 1, 4)):
        found = alone.staged(places, x, side, new(90_000), numbers(90_000 // 8))
        most = times * (2 * alone["l1"] // 3) // (1 + 1 + 4 + 4 + side.itemsize + made)
        assert found.block == most // 64 * 64


def test_bits_are_read_from_any_place_on(alone):
    packed = numbers(4000)
    for first, step in ((0, 1), (3, 1), (8, 1), (20_007, -1), (5, 3)):
        places = first + step * np.arange(9000)
        found = alone.staged(places, bits(9000), bits(9000)[::-1].copy(), new(9000), packed)
        notes = [each for each in found.asked if each.kernel == "stage bits"]
        if step != 1:
            assert not notes  # they are gathered one by one
            continue
        assert notes[0].data[0] == packed.ctypes.data + first // 8
        blocks = [min(found.block, 9000 - at) for at in range(0, 9000, found.block)]
        # The last words are read from a copy: behind the last byte there may be no memory.
        whole = [(first % 8 + n + 7) // 64 - 1 for n in blocks]
        assert [each.n for each in notes] == [n for words in whole for n in (words, 2)]
        last = packed.ctypes.data + packed.nbytes
        assert all((packed.ctypes.data <= each.data[0] < last) == (each.n != 2) for each in notes)


def test_bytes_are_counted_as_they_lie_in_memory(where):
    """A call has threads by what it moves, not by what is made."""
    n = 64 * KB
    moved = (1 + 1 + 4 + 4) * n
    for per_thread, threads in ((moved // 4, 4), (moved // 2, 2), (moved // 2 + KB, 1)):
        found = where(bytes_per_thread=per_thread).staged(*compact(n))
        assert found.threads == threads
        assert len({each.task for each in found.asked}) >= threads
    moved = (4 + 4 + 4) * n + n // 8
    for per_thread, threads in ((moved // 2, 2), (moved // 2 + KB, 1)):
        half = where(bytes_per_thread=per_thread)
        given = np.arange(n), bits(n), bits(n)[::-1].copy(), new(n)
        assert half.staged(*given, numbers(n // 8)).threads == threads


@mark.skipif(platform.machine() != "x86_64", reason="other CPUs number the modes otherwise")
def test_stages_of_each_thread_round_as_the_caller_does(where):
    """And the thread has its own mode back."""
    n = 64 * KB
    busy = where(bytes_per_thread=KB)
    busy["mode_of_threads"] = ROUNDING
    found = busy.staged(*compact(n))
    modes = {each.data[2] & ROUNDING for each in found.asked if each.kernel == "stage uint8"}
    assert (found.threads, modes, busy["modes_left"]) == (4, {0}, 0)
    assert {each.task for each in found.asked} >= {0, 1, 2, 3}


def test_stores_go_past_the_cache_only_where_out_is_not_copied(where):
    half = where(stream_per_thread=1, bytes_per_thread=NEVER)
    n = 64 * KB
    found = half.staged(*compact(n))
    kernels = [each for each in found.asked if each.kernel == "w4 cte"]
    assert found.past_cache and all("stream" in each.flags for each in kernels)
    assert half["fences"] == 1
    found = half.staged(mask(n), numbers(n), bits(n), new(2 * n)[::2])
    kernels = [each for each in found.asked if each.kernel == "w4 cte"]
    assert found.by_tiles and not found.past_cache and not any(each.flags for each in kernels)


def test_stage_that_fails_ends_the_call(alone):
    alone.staged(*compact(9000))
    alone["fails"] = 3
    with raises(AssertionError):
        alone.staged(*compact(9000))
    assert alone["count_of_notes"] == 3
