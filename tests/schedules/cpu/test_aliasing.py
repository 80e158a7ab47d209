"""Which way a span walks, by where its output lies to its inputs: the written code, as it runs."""

from __future__ import annotations

import ctypes

import pytest

from te_select.schedules.cpu.aliasing import COMPARED_BYTES, PENDING_BYTES, backwards_text
from te_select.schedules.cpu.llvm_ir import IRWriter
from tests.support.llvm_functions import compiled

BASE = 1 << 30
LONG = 1 << 20


@pytest.fixture(scope="module")
def is_backwards(tmp_path_factory):
    """Whether ``n`` rows of 4 bytes are walked backwards, by the places of out, then and else."""
    writer = IRWriter()
    symbol = "te_select_test_backwards"
    writer.lines.append(
        f"define linkonce_odr void @{symbol}(ptr %out, ptr %then, ptr %else, i64 %n, "
        "i64 %may, ptr %answer) alwaysinline nounwind {"
    )
    writer.start("entry")
    allowed = writer.emit("icmp ne i64 %may, 0")
    found = backwards_text(writer, allowed, ["then", "else"], 4)
    writer.line(f"store i8 {writer.emit(f'zext i1 {found} to i8')}, ptr %answer, align 1")
    writer.line("ret void")
    text = "\n".join([*writer.lines, "}", ""])
    parameters = ["ptr", "ptr", "ptr", "i64", "i64", "ptr"]
    run = compiled(text, symbol, parameters, tmp_path_factory.mktemp("aliasing"))

    def ask(out, then, else_, n=LONG, allowed=1):
        answer = ctypes.c_int8(-1)
        run(BASE + out, BASE + then, BASE + else_, n, allowed, ctypes.addressof(answer))
        return bool(answer.value)

    return ask


FAR = 2048  # from both of two inputs, in the bits that are compared


@pytest.mark.parametrize("ahead", [1, 64, 512, PENDING_BYTES])
@pytest.mark.parametrize("megabytes", [0, 1, 7, -3])
def test_output_slightly_ahead_of_an_input_is_walked_backwards(is_backwards, ahead, megabytes):
    out = ahead + megabytes * (1 << 20)
    assert is_backwards(out, 0, FAR)
    assert is_backwards(out, FAR, 0)
    assert is_backwards(out, 0, 0)


@pytest.mark.parametrize("ahead", [0, PENDING_BYTES + 1, 1024, FAR, -1, -64, -PENDING_BYTES])
def test_output_anywhere_else_is_walked_forwards(is_backwards, ahead):
    assert not is_backwards(ahead, 0, 0)
    assert not is_backwards(ahead + COMPARED_BYTES, 0, 0)


def test_output_between_two_inputs_is_walked_forwards(is_backwards):
    assert not is_backwards(64, 0, 128)
    assert not is_backwards(64, 128, 0)


def test_short_runs_are_walked_forwards(is_backwards):
    assert not is_backwards(64, 0, 0, n=2047)
    assert is_backwards(64, 0, 0, n=2048)  # 8 KB


def test_where_the_machine_gains_nothing_all_is_walked_forwards(is_backwards):
    assert not is_backwards(64, 0, 0, allowed=0)
