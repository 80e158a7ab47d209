"""The budget of tokens, and the form of the code that it counts."""

import subprocess
import sys
from os import environ

from pytest import fixture, importorskip, mark

from tests.support import ROOT, ended, loaded

CI = ROOT / ".ci"
WEIGHT = CI / "weight.py"


def run(folder, *words, **variables):
    disabled = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = ended(sys.executable, *words, cwd=folder, env=disabled, **variables)
    return done.stdout + done.stderr


@fixture
def weighed(tmp_path):
    """Weigh a checkout of these files, with room for a hundred tokens in each part."""
    importorskip("tomllib", reason="Python 3.11 lints")

    def weigh(files):
        budget = "[tool.te-select.weight]\nproduct = 100\nall-else = 100\n"
        for name, text in {"pyproject.toml": budget, **files}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
        return run(tmp_path, str(WEIGHT), PATH=environ["PATH"])

    return weigh


@fixture
def weight():
    """The module that counts."""
    importorskip("tomllib", reason="Python 3.11 lints")
    return loaded(WEIGHT)


@mark.parametrize(
    "text, tokens",
    [
        ('"""What it is.\n\nMore."""\n# why\n\nx = 1\n', 3),
        ('def f():\n    """One."""\n    return "text"\n', 7),
        ("x = 1; y = 2\n", 7),
        ("x = (\n    1\n)\n", 5),
        ("f\"{a!r:>{b + c}} {f'{d}'} {{\"\n", 1),
        ("x = f'{a}' f'{b}'\n", 4),
        ("'one two three'.split()\n", 5 + 3),
        ("'''\none two\nthree four'''.strip().splitlines()\n", 9 + 4),
        ("TABLE = 'one two'\nTABLE.split()\n", 3 + 5 + 2),
        ("TABLE = 'one two'\nPATH.split()\nprint('one two', sep.split())\n", 3 + 5 + 10),
    ],
)
def test_token_of_python_counts_however_lines_are_cut(weight, text, tokens):
    assert weight.python_tokens(text) == tokens


def test_comments_and_continued_lines_of_c_weigh_nothing(weight):
    text = '/* two\nlines */\nint x; // why "\n\n#define Y(a) \\\n    (a++ + 0x1fu)\n'
    assert weight.c_tokens(text) == 3 + 6 + 6
    assert weight.c_tokens('char *url = "http://a";  // it\'s') == 6


def test_words_of_scripts_and_makefiles_count(weight):
    assert weight.shell_tokens("#!/bin/sh\n  # why\n\ncp a \\\n  b\n") == 3


def test_part_above_its_limit_is_refused(weighed):
    said = weighed({"te_select/a.py": "x = 1\n" * 34, "setup.py": "x\n" * 102})
    assert "product: 102 tokens of 100" in said and "all-else: 102 tokens of 100" in said
    assert "too heavy: product, all-else;" in said


def test_repair_may_exceed_a_limit_by_one_percent(weighed):
    said = weighed({"setup.py": "x\n" * 95, "Makefile": "a: b\n" * 3})
    assert "all-else: 101 tokens of 100" in said and "too heavy" not in said


def test_file_of_no_known_ending_is_refused(weighed):
    assert "te_select/c.rs: is .rs source?" in weighed({"te_select/c.rs": "fn f() {}\n"})


def test_file_of_more_than_350_lines_is_refused(weighed):
    said = weighed({"setup.py": "#\n" * 350, "te_select/a.h": "/* */\n" * 351})
    assert "te_select/a.h has 351 lines" in said and "setup.py has" not in said


@mark.parametrize(
    "line",
    [
        "a, b = b, a",  # a swap
        "low, high = (low, middle) if up else (middle, high)",
        "a, b = 1 << 10, [-1, 'text']",
        "a, b = f(1), f(2)",
        "a, b = x.sum(), y.sum()",
        "a, b = self.x, self.y",
        "a, b = folder / 'a', folder / 'b'",
        "a, b = f()",
        "line = ' ' * len(text)",
        "noughts = '0' * digits",
    ],
)
def test_line_of_one_thought_is_allowed(tmp_path, line):
    assert pack(tmp_path, line) == ""


PACKED = {
    "assigns unrelated things": (
        "a, b = x, y",
        "self.a, self.b = x, 1",
        "a, b = f(), g()",
        "a, b = x.a, y.b",
        "a, b = f'{x}', 1",
        "a, b = *x, 1",
    ),
    "multiplies by a bool": (
        "a = f'{x} more' * (x > 1)",
        "a = ['--all'] * bool(x)",
        "a = 'text' * is_late",
        "a = record.has_won * 'text'",
    ),
}


@mark.parametrize("said, line", [(said, line) for said in PACKED for line in PACKED[said]])
def test_packed_line_is_refused(tmp_path, said, line):
    assert f"a.py:2: {said}" in pack(tmp_path, line)


def pack(folder, line):
    (folder / "a.py").write_text(f"# A comment.\n{line}\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    return run(folder, str(CI / "packed.py"), PATH=environ["PATH"]).strip()
