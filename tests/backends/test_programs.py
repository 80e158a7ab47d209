"""What other programs say."""

import pytest

from te_select import ToolchainError
from te_select.backends import build_key, c_compiler, programs
from te_select.backends.cpu.link import CPU


@pytest.fixture
def script(tmp_path):
    def make(text):
        path = tmp_path / "program"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return make


def test_line_that_is_no_utf_8_is_read_as_far_as_it_is(script):
    assert programs.first_line(script(r"printf 'gcc (Gr\344) 12\n13\n'")) == "gcc (Gr\ufffd) 12"


@pytest.mark.parametrize("text", ["exit 3", "", "echo x; exit 1"])
def test_program_that_fails_or_is_silent_says_nothing(script, text):
    assert programs.first_line(script(text)) is None


def test_failure_is_told_by_the_last_eight_lines_of_errors(script):
    with pytest.raises(ToolchainError, match=r"exit code 2: 2; 3; .*; 9; an advice$"):
        programs.run(script("echo no; seq 9 >&2; exit 2"), advice="an advice")


def test_compiler_that_names_no_machine_is_taken(script, monkeypatch):
    monkeypatch.setenv("CC", script("exit 3"))
    assert programs.c_compiler() == (script("exit 3"),)


def test_cross_compiler_is_known_by_its_file(script, monkeypatch):
    """A wrapper that was mended says the same version as before."""
    seen = []
    monkeypatch.setattr(build_key, "bytes_of", lambda _what, facts, _make: seen.append(facts))
    for text in ('exec cc "$@"', 'exec cc -O3 "$@"'):
        program = script(text)
        with pytest.raises(TypeError):
            c_compiler._unpacked.__wrapped__((program,), CPU, 0)
    assert seen[0] != seen[1]
    assert build_key.of_compiler((program,)) in seen[1]
