"""What the extension asks of kernels and of Python, written down by stand-ins for both."""

from textwrap import dedent

import pytest

from tests.support import ROOT, c_half, python

HEAD = """
    import ctypes, sys
    import numpy as np
    from te_select.runtime.call import _extension as extension

    class Note(ctypes.Structure):
        _fields_ = (("width", ctypes.c_int32), ("has_lock", ctypes.c_int32))
        _fields_ += (("elements", ctypes.c_int64), ("out_strides", ctypes.c_int64 * 2))

    half = ctypes.CDLL(sys.argv[1])
    address = lambda name: ctypes.addressof(ctypes.c_char.in_dll(half, name))
    answer, asked = (ctypes.c_int32.in_dll(half, name) for name in ("answer", "asked"))
    def notes():
        found = (Note * 64).in_dll(half, "notes")[: asked.value]
        asked.value = 0
        return found

    left, fetched, rows, can_fetch = [], [], [], True
    def numpy_fallback(reason, *args, **options):
        left.append(reason)
        return NotImplemented
    def load_kernels(width, converts):
        fetched.append((width, "stages") if converts else width)
        return can_fetch
    where = extension.make(numpy_fallback, load_kernels, rows.append, {}, None, 8)
    NO_KERNEL, REFUSED, FAILED, MISSING = -1, -2, -3, 256
    cond, x = np.ones(8, bool), np.ones(8, np.float32)
"""


@pytest.fixture
def run():
    def alone(code, **environment):
        code = dedent(HEAD) + dedent(code)
        python(code, c_half.built("where_stand_in.c", (), "-ldl"), cwd=ROOT, **environment)

    return alone


def test_interpreters_lock_is_given_away_from_8192_elements(run):
    run("""
        extension.install(address("library"))
        entry = extension.entry(ctypes.cast(half.function, ctypes.c_void_p).value)
        for size in (1, 8191, 8192, 100_000):
            cond, x = np.ones(size, bool), np.ones(size, np.float32)
            where(cond, x, x)
            where(cond, x, x, out=x)
            assert [(n.elements, n.has_lock) for n in notes()] == 2 * [(size, size < 8192)]
            assert entry(cond, x, x, x)
            assert [(n.width, n.has_lock) for n in notes()] == [(4, size < 8192)]
    """)


def test_tensors_of_8192_elements_are_selected_without_gil(run):
    pytest.importorskip("torch")
    run(
        """
        import torch
        function = ctypes.cast(half.function, ctypes.c_void_p).value
        entry = extension.tensor_entry(function, torch.Tensor)
        for size in (1, 8191, 8192, 100_000):
            x = torch.ones(size)
            assert entry(x > 0, x, x, torch.ones(size)) == 0
            assert [n.has_lock for n in notes()] == [size < 8192]
        before = extension.counts()[1]
        x = torch.ones(9000, 3)
        assert entry(x > 0, x, x, torch.ones(9000, 3)) == 0
        assert extension.counts()[1] == before + 27_000
        """,
        PYTHONPATH=ROOT,  # without what hides torch
    )


def test_kernels_are_fetched_when_a_width_is_missing(run):
    run(
        """
        assert where(cond, x, 2.0).tolist() == [1] * 8  # there is no library
        assert (fetched, left) == ([4], ["no kernel"])
        extension.install(address("library"))
        for dtype, width in (("u1", 1), ("f2", 2), ("M8[s]", 8), ("c16", 16), ("V12", 12)):
            where(cond, x.astype(dtype), x.astype(dtype))
            assert [n.width for n in notes()] == [width]
        assert fetched == [4]
        answer.value = NO_KERNEL
        where(cond, x, 2.0)
        assert (len(notes()), fetched, left) == (2, [4, 4], 2 * ["no kernel"])
        can_fetch = False
        where(cond, x, 2.0)
        assert (len(notes()), fetched, left) == (1, [4, 4, 4], 3 * ["no kernel"])
    """
    )


def test_call_that_kernels_refuse_is_left_and_not_counted(run):
    run("""
        extension.install(address("library"))
        for answer.value in (REFUSED, FAILED):
            left.clear()
            assert where(cond, x, 2.0).tolist() == [1] * 8
            where(cond, x, 2.0, out=np.empty(8, np.float32))
            assert left == 2 * ["no kernel"] and not fetched
        out = np.empty(8, np.float32)
        before = sys.getrefcount(out), sys.getrefcount(x.dtype)
        for _ in range(1000):
            where(cond, x, 2.0)
            where(cond, x, 2.0, out=out)
        after = sys.getrefcount(out), sys.getrefcount(x.dtype)
        assert np.abs(np.subtract(after, before)).max() < 200
        assert extension.counts()[:3] == (0, 0, 0)
        answer.value = 0
        where(cond, x, 2.0)
        assert extension.counts()[:3] == (1, 8, 0)
    """)


def test_kernel_of_rows_is_asked_for_once(run):
    run("""
        extension.install(address("library"))
        size = 1 << 20
        cond, x, out = np.ones(size, bool), np.ones(size, "u1"), np.ones(size, "u1")
        asked_for = []
        for number in (5, 7):
            answer.value = MISSING + number
            for _ in range(9):
                where(cond, x, x, out=out)
                asked_for.append(list(rows))
        assert asked_for == 3 * [[]] + 9 * [[5]] + 6 * [[5, 7]]
    """)


def test_elements_are_counted_by_the_kernel_that_a_call_names(run):
    run("""
        extension.install(address("library"))
        for answer.value in (0, 23, 174, MISSING + 174, 175, 255, REFUSED):
            where(cond, x, 2.0)
        counts = memoryview(extension.counts()[4]).cast("q").tolist()
        assert len(counts) == 175
        assert {n: count for n, count in enumerate(counts) if count} == {0: 8, 23: 8, 174: 16}
        assert extension.counts()[:2] == (6, 48)
    """)


SOURCES = """
        class Sources(ctypes.Structure):
            _fields_ = (("kinds", ctypes.c_int32 * 3), ("out_kind", ctypes.c_int32))
            _fields_ += (("flags", ctypes.c_int32), ("bits", ctypes.c_void_p))
        sources = Sources.in_dll(half, "sources")
"""


def test_inputs_of_other_types_are_converted_by_stages(run):
    run(
        SOURCES
        + """
        extension.install(address("library"))
        for number, dtype in enumerate("?bhilBHILefdF"):
            where(cond, np.ones(8, dtype), np.ones(8, "c16"))
            assert list(sources.kinds) == [-1, number, -1]
            where(cond, np.ones(8, "c16"), np.ones(8, dtype))
            assert list(sources.kinds) == [-1, -1, number]
            assert sources.out_kind == 13 and sources.flags == 8
            if number:
                where(np.ones(8, dtype), x, x)
                assert list(sources.kinds) == [number, -1, -1]
        notes()
        where(cond, x, 2)
        where(cond, np.ones(8, "i4"), 2.0)
        assert list(sources.kinds) == [-1, 3, -1] and sources.out_kind == 11
        extension.select(bytes(3), 5, 8, x, x, None)
        assert list(sources.kinds) == [14, -1, -1] and sources.bits
        assert extension.select(bytes(1), 1, 8, x, x, None) is NotImplemented
        assert not fetched and not left
    """
    )


def test_stages_are_fetched_when_a_conversion_is_missing(run):
    run("""
        extension.install(address("library"))
        answer.value = NO_KERNEL
        where(cond, x, np.ones(8, "u1"))
        assert (fetched, left, len(notes())) == ([(4, "stages")], ["no kernel"], 2)
        where(cond, x, x)
        assert fetched == [(4, "stages"), 4]
    """)


def test_library_without_stages_serves_equal_types_only(run):
    run("""
        for version in (4, 7):
            head = ctypes.c_int64(version)  # nothing behind it is read
            try:
                extension.install(ctypes.addressof(head))
            except ValueError as error:
                assert f"have version {version}; expected 5 to 6" in str(error)
            else:
                raise AssertionError("another version was taken")
        extension.install(address("old"))
        assert where(cond, x, np.ones(8, "u1")).dtype == "f4"
        assert (fetched, left, notes()) == ([(4, "stages")], ["no kernel"], [])
        where(cond, x, x)
        assert len(notes()) == 1
    """)
