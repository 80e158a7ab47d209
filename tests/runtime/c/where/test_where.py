"""What where() decides for a call: which kernels do it, in which pieces, on how many threads."""

import numpy as np
from pytest import mark

from te_select.operator import family
from tests.support import shapes
from tests.support.where_recorder import bits, kernels, mask, operands

KB = 1 << 10
FAILED, MISSING = -3, 256
THREADS = 4


# ---- loops --------------------------------------------------------------------------------------


@mark.parametrize(
    "turned",
    [
        lambda a: a,
        lambda a: a[::-1, :, ::-1],
        lambda a: a.transpose(1, 2, 0)[..., ::-1],
    ],
)
def test_operands_that_lie_alike_are_one_run(alone, turned):
    whole = [*operands(3, 4, 5), bits(3, 4, 5)]
    *inputs, out = map(turned, whole)
    (asked,) = alone.asked(*inputs, out)
    assert asked[:3] == ("w4 cte", 1, 60)
    assert asked.data == tuple(array.ctypes.data for array in whole)


def test_operand_that_stays_is_no_part_of_the_run(alone):
    cond, x, y = operands(100)
    assert kernels(alone.asked(cond, x, np.float32(1))) == [("w4 ct", 1, 100)]
    assert kernels(alone.asked(cond, x[:1], y)) == [("w4 ce", 1, 100)]
    assert kernels(alone.asked(cond, x[:1], np.float32(1))) == [("w4 c", 1, 100)]
    assert kernels(alone.asked(True, x, y)) == [("w4 te", 1, 100)]
    assert kernels(alone.asked(np.zeros((1, 1), bool), x[:1], y)) == [("w4 e", 1, 100)]


def test_single_values_need_no_kernel(alone):
    assert alone.asked(True, np.float32(1), np.float32(2), np.empty(9, "f4")) == []
    assert kernels(alone.asked(mask(1), bits(1), bits(1))) == [("w4 cte", 1, 1)]


@mark.parametrize(
    "width, part",
    [(1, 1), (2, 2), (3, 1), (5, 1), (6, 2), (12, 4), (16, 16), (24, 8), (32, 16), (48, 16)],
)
def test_elements_are_cut_into_the_widest_parts_that_there_are(alone, width, part):
    dtype = f"V{width}"
    cond = mask(9)
    x = bits(9, dtype=dtype)
    y = bits(9, dtype=dtype)[::-1].copy()
    asked = alone.asked(cond, x, y, rows=False)
    each = (f"w{part} cte", 1, 9) if part == width else (f"w{part} te", 1, width // part)
    assert kernels(asked) == [each]
    assert len(asked) == (1 if part == width else 9)


# ---- runs, rows and tiles -----------------------------------------------------------------------


@mark.parametrize(
    "of, number",
    [
        ("50,1 50,3 50,3", 9),
        ("50,3 50,3 50,1", 1),
        ("50,3 50,3 1,3", 2),
        ("1,3 50,3 50,1", 19),
        ("50,1 50,3 1,1", 11),  # of a single value, a row is made
    ],
)
def test_short_rows_are_done_many_at_a_time(alone, of, number):
    cond, x, y = shapes(of)
    given = (mask(*cond), bits(*x), bits(*y))
    assert kernels(alone.asked(*given)) == [(f"w4_rows{number:02}", 50, 3)]


def test_runs_do_the_work_of_a_missing_kernel_of_rows_once(alone):
    given = (mask(50, 1), bits(50, 3), bits(1, 1))
    outcome = alone.select(*given, np.zeros((50, 3), "f4"), rows=False)
    assert outcome == MISSING + 5 * 8 + 27 * 2 + 11
    assert kernels(alone.notes()) == [("w4 t", 1, 3)] and len(alone.notes()) == 50
    # There is none for 16 bytes, and none is needed for long rows.
    wide = (mask(50, 1), bits(50, 300, dtype="c16"), bits(50, 300, dtype="c16"))
    assert alone.select(*wide, np.zeros((50, 300), "c16"), rows=False) == 8 * 4 + 3


@mark.parametrize(
    "of",
    [
        "30 30 30",  # one row, however short
        "9,1 9,30 30",
        "9,1 9,30 9,30",
        "2,9,1 1,9,30 2,1,30",
    ],
)
@mark.parametrize("dtype", ["u1", "c16"])
def test_result_names_the_kernel_that_was_asked(alone, of, dtype):
    cond, x, y = shapes(of)
    inputs = mask(*cond), bits(*x, dtype=dtype), bits(*y, dtype=dtype)
    number = alone.select(*inputs, np.zeros(np.broadcast_shapes(cond, x, y), dtype))
    (asked,) = {note.kernel for note in alone.notes()}
    counts = [0] * 175
    counts[number] = 1
    (name,) = family.by_name(counts)
    if "rows" in asked:
        assert family.kernels()[name] in family.parts()[asked]
    else:
        width, movers = asked.split()
        assert name.removesuffix(" x 2:te").replace("n*2:te", "n:te") == f"{width} n:{movers}"


@mark.parametrize("elements, joined", [(1023, True), (1024, False)])
def test_rows_from_4_kb_on_are_done_one_by_one(alone, elements, joined):
    asked = alone.asked(mask(5, 1), bits(5, elements), bits(5, elements))
    assert kernels(asked) == [("w4_rows09", 5, 1023) if joined else ("w4 te", 1, 1024)]


@mark.parametrize("elements, tiles", [(31, True), (32, False)])
def test_rows_with_gaps_are_copied_below_128_bytes(alone, elements, tiles):
    cond, x, y = operands(20, elements)
    with_gaps = bits(20, elements + 1)[:, :elements]
    asked = alone.asked(cond, with_gaps, y)
    assert kernels(asked) == [("w4 cte", 1, 20 * 31) if tiles else ("w4 cte", 1, 32)]
    assert (asked[0].data[1] == with_gaps.ctypes.data) != tiles
    assert asked[0].data[2] == y.ctypes.data
    out = np.zeros((20, elements + 1), "f4")[:, :elements]
    asked = alone.asked(cond, x, y, out)
    assert (asked[0].data[3] == out.ctypes.data) != tiles
    assert kernels(asked) == [("w4 cte", 1, 20 * 31) if tiles else ("w4 cte", 1, 32)]


@mark.parametrize("elements, kernel", [(3, ("w4_rows03", 50, 3)), (100, ("w4 ce", 1, 100))])
def test_values_of_rows_that_do_not_follow_each_other_in_memory(alone, elements, kernel):
    """Those of short rows are copied, so that they do; longer rows are done one by one."""
    stepping = bits(100)[::2, None]
    given = (mask(50, elements), stepping, bits(50, elements))
    assert kernels(alone.asked(*given)) == [kernel]


@mark.parametrize("elements, copied", [(31, True), (32, False)])
def test_tile_copies_rows_with_gaps_only_if_they_are_short(alone, elements, copied):
    cond = mask(16, elements)
    turned = bits(elements, 16).T
    with_gaps = bits(16, elements + 1)[:, :elements]
    asked = alone.asked(cond, turned, with_gaps)
    assert (asked[0].data[2] == with_gaps.ctypes.data) != copied
    assert len(asked) == (1 if copied else 16)


def test_operand_not_contiguous_along_rows_is_copied_by_tiles(alone):
    """Of 16 KB: 16 rows of 1 KB, or a piece of a single row. The others are read where they lie."""
    cond, x, y = operands(40, 600)
    turned = bits(600, 40).T
    asked = alone.asked(cond, turned, y)
    assert kernels(asked) == [("w4 cte", 1, 256), ("w4 cte", 1, 88)]
    assert len(asked) == 3 * 40
    assert [asked[16 * k].data[0] - cond.ctypes.data for k in range(4)] == [0, 256, 512, 9600]
    assert all(asked[k].data[1] - asked[0].data[1] == 1024 * k for k in range(16))
    assert asked[16 * 3].data[1] == asked[0].data[1]  # each tile has the same memory
    stepping = np.repeat(x[0], 20)[::2]
    asked = alone.asked(mask(6000), stepping, bits(6000))
    assert kernels(asked) == [("w4 cte", 1, 4096), ("w4 cte", 1, 1904)]


@mark.parametrize("dtype, rows", [("u1", 2), ("f8", 2), ("c16", 2), ("f4", 64)])
def test_tile_has_16_rows_of_1_kb_whatever_the_width(alone, dtype, rows):
    """Also of rows of 64 KB, which are done one by one if they need no copies."""
    width = np.dtype(dtype).itemsize
    columns = KB // width
    turned = bits(rows * columns, 32, dtype=dtype).T
    given = mask(32, rows * columns), turned, bits(32, rows * columns, dtype=dtype)
    asked = alone.asked(*given)
    assert kernels(asked) == [(f"w{width} cte", 1, columns)] and len(asked) == rows * 32
    assert [asked[16 * k].data[1] == asked[0].data[1] for k in range(3)] == [True] * 3


# ---- threads ------------------------------------------------------------------------------------


def test_call_has_as_many_threads_as_its_bytes_are_worth(where):
    """13 bytes an element; 5 bytes for all of cond, and one side, if that is a single value."""
    made = where(bytes_per_thread=13 * KB)
    for elements, threads in {2047: 0, 2048: 2, 3071: 2, 3072: 3, 99_999: THREADS}.items():
        made.asked(*operands(elements))
        assert (made["wanted_threads"], made["jobs"]) == (threads, threads > 0)
        assert made["threads_of_job"] == threads or not threads
    made = where(bytes_per_thread=8 * KB)
    for elements, threads in ((2047, 0), (2048, 2)):
        made.asked(True, bits(elements), bits(elements))
        assert made["wanted_threads"] == threads


def test_call_that_gets_one_thread_is_given_to_nobody(where):
    made = where(bytes_per_thread=KB)
    made["at_hand"] = 1
    assert kernels(made.asked(*operands(99_999))) == [("w4 cte", 1, 99_999)]
    assert (made["wanted_threads"], made["jobs"]) == (THREADS, 0)


def test_run_is_cut_into_tasks_of_whole_lines(where):
    """A task moves 256 KB; every thread has as many. Stores past the cache need lines of 1 KB."""
    made = where(bytes_per_thread=KB)
    asked = made.asked(*operands(300_000))  # 3.9 MB
    assert (made["tasks_of_job"], made["threads_of_job"]) == (16, THREADS)
    assert [each.task for each in asked] == list(range(16))
    assert [each.n for each in asked] == [74 * 256] * 15 + [300_000 - 15 * 74 * 256]


def test_rows_are_cut_between_rows_unless_a_row_is_wide(where):
    made = where(bytes_per_thread=KB)
    asked = made.asked(mask(1000, 1), bits(1000, 300), bits(1000, 300))
    assert made["tasks_of_job"] == 16
    assert kernels(asked) == [("w4_rows09", 63, 300), ("w4_rows09", 55, 300)]
    for elements, pieces in ((16_383, 2), (16_384, 4)):  # 64 KB
        asked = made.asked(mask(2, 1), bits(2, elements), bits(2, elements))
        assert made["tasks_of_job"] == pieces
        rows = [("w4 te", 1, 16_383)] if pieces == 2 else [("w4 te", 1, 8192)]
        assert kernels(asked) == rows


def test_rows_that_are_fewer_than_the_tasks_are_cut(where):
    """Although there are more rows than threads: every thread has as many tasks of 256 KB."""
    made = where(bytes_per_thread=KB)
    with_gaps = bits(6, 20_001)[:, :20_000]
    asked = made.asked(mask(6, 20_000), with_gaps, bits(6, 20_000))
    assert (made["tasks_of_job"], made["threads_of_job"]) == (8, THREADS)
    assert [each.n for each in asked] == [40 * 256, 20_000 - 40 * 256] * 6


def test_loops_around_the_block_are_shared_among_tasks(where):
    made = where(bytes_per_thread=KB)
    cond = mask(6, 5, 1, 300)
    x = bits(6, 1, 7, 300)
    y = bits(1, 5, 7, 300)
    asked = made.asked(cond, x, y)
    assert kernels(asked) == [("w4_rows18", 7, 300)]
    places = [each.data[3] for each in asked]
    assert places == sorted(places) and len(places) == 30
    assert [each.task for each in asked] == [0] * 7 + [1] * 8 + [2] * 7 + [3] * 8


def test_no_more_tasks_than_pieces(where):
    made = where(bytes_per_thread=KB, threads=64)
    asked = made.asked(*operands(700))
    assert kernels(asked) == [("w4 cte", 1, 256), ("w4 cte", 1, 188)]
    assert (made["wanted_threads"], made["tasks_of_job"], made["threads_of_job"]) == (8, 3, 8)


def test_failure_of_a_kernel_is_that_of_the_call(where):
    made = where(bytes_per_thread=KB)
    given = (*operands(300_000), np.zeros(300_000, "f4"))
    for which in (1, 16):
        made["fails"] = which
        assert made.select(*given) == FAILED
        assert len(made.notes()) == 16
    made["fails"] = 0
    assert made.select(*given) >= 0
