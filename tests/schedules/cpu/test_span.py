import re

import pytest

from te_select.schedules.cpu.span import Span
from te_select.schedules.cpu.span_source import span_source


def test_symbol_holds_every_parameter():
    span = Span(4, "o", "f", "i", 3, 32, 1, streaming=True, skipping=True, end_to_end=True)
    assert Span.from_symbol(span.symbol) == span


@pytest.mark.parametrize(
    "wrong", ["", "memcpy", "te_select_span_w4_fff_i1_v64", "te_select_span_w4_fxf_i1_v64_u4"]
)
def test_other_symbols_are_refused(wrong):
    with pytest.raises(ValueError, match="not the symbol of a span"):
        Span.from_symbol(wrong)


@pytest.mark.parametrize("moves", ["fff", "ffs", "fss", "sff", "sfs", "off", "ofi", "fos"])
def test_text_assumes_no_alignment(moves):
    inner = 3 if set(moves) & set("oi") else 1
    text = span_source(Span(4, *moves, inner, 64, 2, streaming=False, skipping=False).symbol)
    accesses = [line for line in text.splitlines() if " load " in line or " store " in line]
    assert accesses
    assert all(line.endswith("align 1") for line in accesses)


def test_cond_that_stays_is_read_once_and_picks_the_side():
    text = span_source(Span(4, "s", "f", "f", 1, 64, 4, streaming=False, skipping=False).symbol)
    assert text.count("ptr %cond") == 2  # the parameter and one load
    assert "icmp ne <" not in text  # no vector of masks


def test_repeating_operand_is_loaded_before_the_loop():
    text = span_source(Span(4, "f", "f", "s", 1, 64, 1, streaming=False, skipping=False).symbol)
    assert text.index("getelementptr i32, ptr %else") < text.index("phi i64")
    assert text.count("getelementptr i32, ptr %else") == 1


@pytest.mark.parametrize(
    ("width", "moves", "inputs"),
    [
        (4, "fff", {"then", "else"}),
        (1, "fff", {"cond", "then", "else"}),
        (1, "sfs", {"then"}),
        (1, "fss", {"cond"}),
        (4, "fss", set()),
    ],
)
def test_way_is_chosen_by_what_is_read_as_out_is_written(width, moves, inputs):
    """A cond of one byte for each wider element falls behind out, so it lies ahead for a moment."""
    text = span_source(Span(width, *moves, 1, 64, 4, streaming=False, skipping=False).symbol)
    assert set(re.findall(r"ptrtoint ptr %(\w+) ", text)) == {"out", *inputs}
