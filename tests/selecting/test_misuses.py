"""What NumPy refuses is refused with its exceptions and words; the others have a reason."""

import numpy as np
from pytest import mark

import te_select

COND = np.array([True, False])
X = np.ones(2)
I4 = np.ones(2, "i4")
CLOSED = np.ones(2)
FIXED = "same_kind"
DATES = np.ones(2, "M8[s]")
CLOSED.flags.writeable = False
THREE = np.ones(3, bool)
FIELDS = np.zeros(2, [("a", "i4")])
HUGE = 10**400
MISUSES = {
    "select": [
        (), (np.array(True), np.array(1)), ([], []), ([COND], [X, X]), (5, [X]), ([I4], [X]),
        ([None], [X]), ([COND], [X], "a"), ([COND], [np.ones(3)]), ([COND], [HUGE]),
        ([COND], [FIELDS]), ([COND], [X], 0, 1),
    ],
    "copyto": [
        (), ([1, 2], 1), (CLOSED, 1.0, FIXED, COND), (X, "a"), (I4, 1.5), (X, X, "nonsense"),
        (X, X, FIXED, THREE), (X, X, FIXED, X), (X, None), (X, HUGE, FIXED, COND),
        (DATES, 1.0, FIXED, COND),
    ],
    "putmask": [
        (), (5, COND, 1), (CLOSED, COND, 1.0), (X, THREE, 1.0), (X, COND, "a"), (X, COND, []),
        (X, COND, HUGE), (X, COND, 1, 2),
    ],
}  # fmt: skip
BY_NAME = {
    "select": [{"condlist": [COND], "choicelist": [X], "nope": 1}, {}],
    "copyto": [{"dst": X, "src": 1, "when": COND}, {"dst": X}],
    "putmask": [{"a": X, "mask": COND, "values": 1}, {"mask": COND, "values": 1}],
}
CALLS = [(name, given, {}) for name, calls in MISUSES.items() for given in calls]
CALLS += [(name, (), given) for name, calls in BY_NAME.items() for given in calls]


def outcome(function, given, named):
    """The value, what was written, or the error of a call."""
    copied = [each.copy() if each is X or each is I4 else each for each in given]
    try:
        return repr(function(*copied, **named)), repr(copied)
    except Exception as error:
        return type(error), str(error)


@mark.parametrize("number", range(len(CALLS)))
def test_error_is_numpys_in_type_and_words(number):
    name, given, named = CALLS[number]
    found, expected = (outcome(getattr(each, name), given, named) for each in (te_select, np))
    assert found == expected, (name, given, named)


@mark.parametrize(
    "given, named, said",
    [
        ((COND,) * 9, {}, "takes 1 or 3 positional arguments and out"),
        ((COND,), {"x": X, "y": X}, "got an unexpected keyword argument 'x'; expected out"),
        ((COND, X, 2.0), {"axis": X}, "got an unexpected keyword argument 'axis'; expected out"),
        ((), {"condition": COND}, "got an unexpected keyword argument 'condition'; expected out"),
        ((COND,), {"out": X}, "takes out only with cond, x and y"),
    ],
)
def test_words_of_where_name_out_which_numpy_lacks(given, named, said):
    assert outcome(te_select.where, given, named) == (TypeError, f"where() {said}")
    assert outcome(np.where, given, named)[0] is TypeError
