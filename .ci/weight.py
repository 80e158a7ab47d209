"""Refuse a checkout that holds more lines of code than ``[tool.te-select.weight]`` allows.

A line of code has more than a comment or a docstring. Every file of source counts.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

import tomllib

PYTHON, C = {".py", ".pyi"}, {".c", ".h", ".cc", ".cpp", ".hpp", ".cu", ".cuh", ".inc", ".S"}
SHELL = {"", ".sh"}  # .ci/run has no ending
NO_CODE = {
    ".json", ".md", ".png", ".svg", ".tir", ".toml", ".txt", ".typed", ".yaml", ".yml",
    ".clang-format", ".clang-tidy", ".gitignore",
}  # fmt: skip
PRODUCT = {"te_select", "schedules"}
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


def python_lines(text: str) -> int:
    """Lines that hold a token of code, docstrings left out."""
    silent: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        match getattr(node, "body", None):
            case [ast.Expr(value=ast.Constant(value=str())) as docstring, *_]:
                silent.update(range(docstring.lineno, docstring.end_lineno + 1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = (range(t.start[0], t.end[0] + 1) for t in tokens if t.type not in SILENT)
    return len({line for span in spans for line in span} - silent)


def c_lines(text: str) -> int:
    """Lines that hold more than a comment."""
    bare = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    return sum(bool(line.split("//")[0].strip()) for line in bare.splitlines())


def shell_lines(text: str) -> int:
    """Lines that hold more than a comment."""
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def lines_of(name: str) -> int:
    """Lines of code of a file."""
    path = Path(name)
    if path.suffix in NO_CODE or path.is_symlink():
        return 0
    counted = COUNTED.get(path.suffix)
    if counted is None:
        sys.exit(f"{name}: is {path.suffix} source? expected it in PYTHON, C, SHELL or NO_CODE")
    return counted(path.read_text())


COUNTED = (
    dict.fromkeys(PYTHON, python_lines)
    | dict.fromkeys(C, c_lines)
    | dict.fromkeys(SHELL, shell_lines)
)


def part_of(name: str) -> str:
    """The part of the budget that pays for a file."""
    folder = Path(name).parts[0]
    if folder in PRODUCT:
        return "product-python" if Path(name).suffix in PYTHON else "product-c"
    return "tests" if folder == "tests" else "around"


if __name__ == "__main__":
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout
    weight: Counter[str] = Counter()
    for name in listed.splitlines():
        if "/" in name and Path(name).exists():  # setup.py alone lies at the top
            weight[part_of(name)] += lines_of(name)
    allowed = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["te-select"]["weight"]
    for part, most in allowed.items():
        print(f"{part}: {weight[part]} lines of {most}")
    over = [part for part, most in allowed.items() if weight[part] > most]
    if over or weight.keys() - allowed.keys():
        sys.exit(f"too heavy: {', '.join(over)}; a feature pays for its lines by what it removes")
