"""Which way a span walks, by where its output lies to its inputs: the written code, as it runs."""

import ctypes

from pytest import fixture, mark
from tvm.tirx.script.builder import ir as T

from te_select.schedules.cpu.aliasing import COMPARED_BYTES, PENDING_BYTES, backwards
from te_select.schedules.cpu.vectors import Array
from tests.support.tir_functions import compiled, function

BASE = 1 << 30
LONG = 1 << 20


PARAMETERS = {name: "ptr" for name in ("out", "then", "else_")} | {
    "n": "i64",
    "may": "i64",
    "answer": "ptr",
}


@fixture(scope="module")
def is_backwards(tmp_path_factory):
    """Whether ``n`` rows of 4 bytes are walked backwards, by the places of out, then and else."""

    def write(out, then, else_, n, may, answer):
        arrays = [Array.at("array", 4, pointer) for pointer in (out, then, else_)]
        found = backwards(may != T.int64(0), arrays[0], arrays[1:], n, 4)
        Array.at("answer", 1, answer).store(0, found.astype("uint8"), 1)

    run = compiled(
        function(PARAMETERS, write), tuple(PARAMETERS.values()), tmp_path_factory.mktemp("aliasing")
    )

    def ask(out, then, else_, n=LONG, allowed=1):
        answer = ctypes.c_int8(-1)
        run(BASE + out, BASE + then, BASE + else_, n, allowed, ctypes.addressof(answer))
        return bool(answer.value)

    return ask


FAR = 2048  # from both of two inputs, in the bits that are compared


@mark.parametrize("ahead", [1, 64, 512, PENDING_BYTES])
@mark.parametrize("megabytes", [0, 1, 7, -3])
def test_output_slightly_ahead_of_an_input_is_walked_backwards(is_backwards, ahead, megabytes):
    out = ahead + megabytes * (1 << 20)
    assert is_backwards(out, 0, FAR)
    assert is_backwards(out, FAR, 0)
    assert is_backwards(out, 0, 0)


@mark.parametrize("ahead", [0, PENDING_BYTES + 1, 1024, FAR, -1, -64, -PENDING_BYTES])
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
