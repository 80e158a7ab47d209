"""te_select.where does what numpy.where does: values, types, layouts, warnings and errors."""

import sys

import numpy as np
from pytest import mark, raises, warns

import te_select
from te_select import copyto, putmask
from te_select.operator.dtypes import ELEMENT_TYPES, numpy_dtype
from tests.selecting.table import CALLS, COND, EACH, LEFT, SEEDS, UNEXPLAINED
from tests.support.where_calls import difference, filled, outcome, random_call

where = te_select.where


def check(given, **options):
    """The outcome is NumPy's; how many of the calls kernels served."""
    expected = outcome(np.where, given)
    calls = where.stats().calls
    found = outcome(lambda *args: where(*args, **options), given)
    assert difference(found, expected) is None, given
    return where.stats().calls - calls


@SEEDS
def test_random_calls_are_those_of_numpy(seed):
    for number in range(EACH):
        arguments = random_call(np.random.default_rng([seed, number]))
        found = difference(outcome(where, arguments), outcome(np.where, arguments))
        assert found is None, f"random_call({[seed, number]}): {found}"


@mark.parametrize("name", CALLS)
def test_call_that_kernels_serve_is_numpys_and_explained(name):
    given = CALLS[name]
    before = where.stats()
    found = where.explain(*given)
    assert where.stats() == before
    assert check(given) == 1
    after = where.stats()
    assert (after.left, found.left) == (before.left, "")
    kernels = {name for name, n in after.kernels.items() if n != before.kernels.get(name)}
    assert kernels == {found.kernel} - {"tiles", "fill"}


LEFT_CALLS = {name: (reason, given) for reason in LEFT for name, given in LEFT[reason].items()}


@mark.filterwarnings("ignore:overflow")
@mark.parametrize("name", LEFT_CALLS)
def test_call_that_is_left_is_numpys_for_the_reason_explained(name):
    reason, given = LEFT_CALLS[name]
    if reason != "arguments":
        found = where.explain(*given)
        assert (found.left, found.kernel) == (reason, "")
        assert str(found).startswith(f"left: {reason}")
    before = where.stats()
    result, warned = outcome(where, given)
    grown = {key: n - before.left.get(key, 0) for key, n in where.stats().left.items()}
    assert {key: n for key, n in grown.items() if n} == {reason: 1}
    expected = outcome(np.where, given)
    if isinstance(expected[0], tuple):  # of nonzero, and of a rule of its own
        assert repr(result) == repr(expected[0])
    else:
        assert difference((result, warned), expected) is None


X = np.ones(1000)
INTS = np.arange(1000) % 2
SMALL = {
    "cond alone": (te_select.where, INTS),
    "dates": (te_select.where, INTS, INTS.view("M8[D]"), INTS.view("M8[s]")),
    "a single date": (te_select.where, INTS, INTS.view("M8[s]"), np.datetime64(1, "D")),
    "objects": (te_select.where, INTS, X.astype(object), 1),
    "copyto": (copyto, X, 2.0, "same_kind", INTS > 0),
    "copyto of all": (copyto, X, INTS),
    "copyto that converts": (copyto, X, X.astype("f4"), "same_kind", INTS > 0),
    "putmask": (putmask, X, INTS, 3.0),
    "putmask of few values": (putmask, X, INTS > 0, X[:4].copy()),
}


@mark.parametrize("name", SMALL)
def test_small_call_runs_no_python_of_ours(name):
    function, *given = SMALL[name]
    function(*given)  # loads what it needs
    ran = []
    sys.setprofile(lambda frame, event, _: ran.append((event, frame.f_globals.get("__name__"))))
    function(*given)
    sys.setprofile(None)
    assert not [module for event, module in ran if event == "call" and "te_select" in module]


@mark.parametrize("name", UNEXPLAINED)
def test_call_that_explain_does_not_take_is_numpys(name):
    check(UNEXPLAINED[name])


def test_a_number_that_overflows_warns_at_the_callers_line():
    x = np.zeros(2, "f4")
    with warns(RuntimeWarning, match="overflow encountered in cast") as caught:
        where([True, True], x, 1e300)
        where(np.array([True, True]), x, 1e300)
    assert caught[-1].filename == __file__
    with np.errstate(over="raise"), raises(FloatingPointError):
        where(np.array([True, True]), x, 1e300)


@mark.parametrize("shape", [(4096,), (4097,), (153_600,), (150, 1024), (8, 20_000)])
def test_call_counts_once_and_as_large_above_4096_elements(shape):
    x = np.ones(shape, "f4")
    y = np.zeros(shape[-1:])
    before = where.stats()
    where(np.ones(shape, bool), x, y)
    after = where.stats()
    found = after.calls - before.calls, after.large_calls - before.large_calls
    assert (*found, after.elements - before.elements) == (1, x.size > 4096, x.size)


@mark.parametrize("dtype", ["M8[s]", "S3", "V5", *ELEMENT_TYPES])
@mark.parametrize("is_read_only", [False, True])
def test_kernels_serve_every_type_and_read_only_arrays(dtype, is_read_only):
    rng = np.random.default_rng(1)
    of = numpy_dtype(dtype) if dtype in ELEMENT_TYPES else np.dtype(dtype)
    given = [filled(rng, (4, 1), np.dtype(bool)), filled(rng, (4, 7), of), filled(rng, (7,), of)]
    for array in given:
        array.flags.writeable = not is_read_only
    assert check(given) == 1


def test_metadata_of_an_element_type_does_not_reach_the_result():
    plain = np.ones(2, np.float32)
    x = plain.astype(np.dtype("f4", metadata={"of": "x"}))
    for sides in ((x, x), (x, 1.0), (x, plain)):
        assert where(COND, *sides).dtype.metadata is None


def test_stats_leave_out_calls_that_no_one_kernel_serves():
    x = np.ones((300, 70), "f4")
    numbers = np.broadcast_to(np.float32(2), (300, 70))
    before = where.stats()
    for given, name in (
        ((np.ones((70, 300), bool).T, x, x), "tiles"),
        ((True, np.ones((), "f4"), numbers), "fill"),
    ):
        where(*given)
        assert where.explain(*given).kernel == name
    after = where.stats()
    assert (after.calls - before.calls, after.kernels) == (2, before.kernels)


DATES = [*(f"M8[{unit}]" for unit in ("Y", "M", "W", "D", "h", "s", "ms", "ns", "7s")), "M8"]
SPANS = [dtype.replace("M8", "m8") for dtype in DATES]
SINGLE = [0, 1, -3, 2_000_000_000, 2**62, np.iinfo("i8").min]  # the last is NaT


@mark.parametrize(
    "array, single",
    [(a, b) for each in (DATES, SPANS) for a in each[:-1] for b in each if a != b],
)
def test_single_date_of_another_unit_is_what_numpy_makes_of_it(array, single):
    x = np.arange(5).view(array)
    cond = np.arange(5) % 2 == 0
    for value in SINGLE:
        y = np.array(value).view(single)
        for given in ((cond, x, y), (cond, y[()], x), (cond, x[:1], y), (cond[:1], y, x)):
            check(given)


@mark.parametrize(
    "array, single",
    [
        ("M8[Y]", np.datetime64("NaT")),
        ("m8[s]", np.timedelta64(7)),
        ("M8[D]", np.datetime64("1969", "Y")),
        ("m8[ms]", np.array([[4]], "m8[s]")),
    ],
)
def test_kernels_take_a_single_date_that_loses_nothing(array, single):
    x = np.arange(6000).view(array).reshape(2, 3000)
    for cond in (np.arange(6000).reshape(2, 3000) % 3 == 0, np.arange(3000) % 3):
        left = where.stats().left
        assert check((cond, x, single)) == check((cond, x, single), out=np.empty_like(x)) == 1
        assert where.stats().left == left
