import warnings

import pytest

from te_select.frontends.symbolic.text import evaluate, parse


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("past_sequence_length + sequence_length", "sequence_length+past_sequence_length"),
        ("((((height - 1)//32)) + 1)", "(height + 31)//32"),
        ("2*s0", "s0 + s0"),
        ("s0**2", "s0*s0"),
        ("Min(64, sequence)", "min(sequence, 64)"),
        ("floor(s0/2)", "FloorDiv(s0, 2)"),
        ("Mod(s0, 2)", "s0 % 2"),
    ],
)
def test_texts_of_one_arithmetic_are_one_size(one, two):
    assert parse(one) == parse(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [("batch", "sequence"), ("2", "20"), ("s0/2", "s0//2"), ("batch size", "batch_size")],
)
def test_other_texts_are_other_sizes(one, two):
    assert parse(one) != parse(two)


@pytest.mark.parametrize("text", ["2", "-1", "1 + 1", "batch - batch"])
def test_lone_number_is_a_name(text):
    assert parse(text).names == {text}


LONG = ("+".join(["a"] * 5000), "(" * 300, "9" * 5000, "a**999999")


@pytest.mark.parametrize(
    "text",
    [
        *("(", "batch-", "2x", "a.b", "f(", "lambda", "a if b else c", "[1]", "x\0y", "?0", "\xe9"),
        *("1/0", "a//0", "__import__('os')", *LONG),
    ],
)
def test_text_that_is_no_arithmetic_is_a_name(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(parse(text).names) == 1


def test_size_is_evaluated():
    assert evaluate("past + 2*sequence", {"past": 3, "sequence": 4}) == 11
    assert evaluate("Min(64, sequence)", {"sequence": 100}) == 64
    assert evaluate("past + sequence", {"past": 3}) is None
    assert evaluate("dim 0 of input 'x'", {}) is None


@pytest.mark.parametrize(("text", "value"), [("a**8", 256), ("a**9", None), ("a**(0-1)", None)])
def test_powers_are_computed_up_to_the_eighth(text, value):
    assert evaluate(text, {"a": 2}) == value
