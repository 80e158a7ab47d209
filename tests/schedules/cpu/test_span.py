"""Spans: their names, and the TIR and LLVM IR that is made of them."""

import re
from pathlib import Path

from pytest import mark

from te_select.backends.cpu import lowering
from te_select.backends.targets import resolve
from te_select.schedules.cpu.span import Span
from tests.support import golden
from tests.support.tir_functions import span_function

SPANS = {
    "plain_run": Span(4, "f", "f", "f", 1, 16, 2, streaming=True, skipping=True),
    "one_value_of_cond": Span(4, "s", "f", "s", 1, 16, 1, streaming=False, skipping=False),
    "short_rows": Span(4, "o", "f", "i", 3, 16, 1, streaming=False, skipping=False),
    "rows_end_to_end": Span(4, "o", "f", "i", 0, 16, 1, True, False, end_to_end=True),
    "rows_of_named_length": Span(4, "o", "f", "s", 0, 16, 1, streaming=False, skipping=False),
}


@mark.parametrize("name", SPANS)
def test_span_is_the_golden_one(name, update_golden):
    text = golden.readable(span_function(SPANS[name]).script()) + "\n"
    golden.check(Path(__file__).parent / "golden_spans" / f"{name}.tir", text, update_golden)


def llvm(span):
    """The LLVM IR of a span alone."""
    module = lowering.build([span_function(span)], resolve("x86-64-v3").tvm)
    return str(module.inspect_source("ll")).partition("define weak")[0]


ACCESS = re.compile(r" (?:load|store) .*?, align (\d+)")


@mark.parametrize(
    "span",
    [
        *(Span(4, *moves, 1, 64, 2, False, False) for moves in ("fff", "ffs", "fss", "sff", "sfs")),
        *(Span(4, *moves, 3, 64, 2, False, False) for moves in ("off", "ofi", "fos")),
        Span(4, "f", "f", "f", 1, 64, 4, streaming=True, skipping=True),
        Span(4, "o", "f", "f", 0, 64, 1, True, False, end_to_end=True),
    ],
)
def test_code_assumes_alignment_only_past_the_cache(span):
    text = llvm(span)
    past = [line for line in text.splitlines() if "!nontemporal" in line]
    assert bool(past) == span.streaming
    assert all(" store " in line and ", align 64," in line for line in past)
    others = [line for line in text.splitlines() if ACCESS.search(line) and line not in past]
    assert {ACCESS.search(line)[1] for line in others} == {"1"}


@mark.parametrize(
    "width, moves, inputs",
    [
        (4, "fff", {"then_1", "else__1"}),
        (1, "fff", {"cond_1", "then_1", "else__1"}),
        (1, "sfs", {"then_1"}),
        (1, "fss", {"cond_1"}),
        (4, "fss", set()),
    ],
)
def test_way_is_chosen_by_what_is_read_as_out_is_written(width, moves, inputs):
    """A cond of one byte for each wider element falls behind out, so it lies ahead for a moment."""
    script = span_function(Span(width, *moves, 1, 64, 4, False, False)).script()
    found = set(re.findall(r'T.reinterpret\("int64", T.address_of\((\w+)\[', script))
    assert found == ({"out_1", *inputs} if inputs else set())
