"""Refuse a checkout that holds more tokens of code than ``[tool.te-select.weight]`` allows.

A token is a name, a number, a string or an operator, so joining lines saves nothing. Of a string
that is split as a table each word counts, and of the Makefile and of scripts what stands between
blanks. Comments and docstrings weigh nothing.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import tomllib

PYTHON, C = {".py", ".pyi"}, {".c", ".h", ".cc", ".cpp", ".hpp", ".cu", ".cuh", ".inc", ".S"}
SHELL = {".sh", "Makefile", "run"}
NO_CODE = {
    ".json", ".md", ".png", ".svg", ".tir", ".toml", ".txt", ".typed", ".yaml", ".yml",
    ".clang-format", ".clang-tidy", ".gitignore", ".in", "LICENSE", "NOTICE",
}  # fmt: skip
PRODUCT = {"te_select", "schedules"}
LONGEST = 350  # lines of a file
SLACK = 1.01  # repairs may exceed a limit by 1 %; a feature ends at its limit
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip
# From 3.12 on an f-string is cut into its parts; from 3.14 on there are t-strings.
STARTS = {getattr(tokenize, name, None) for name in ("FSTRING_START", "TSTRING_START")} - {None}
ENDS = {getattr(tokenize, name, None) for name in ("FSTRING_END", "TSTRING_END")} - {None}
C_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\\\n|(?P<code>
    "(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|\d[\w.]*
    |->|\+\+|--|<<=?|>>=?|[-+*/%&|^=!<>]=|&&|\|\||\.\.\.|[^\s\w])""",
    re.DOTALL | re.VERBOSE,
)


def python_tokens(text: str) -> int:
    """Tokens of Python; of a string that is split as a table, the words too."""
    tree = ast.parse(text)
    docstrings: set[tuple[int, int]] = set()
    texts: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(table))):
                texts[name] = table
        match getattr(node, "body", None):
            case [ast.Expr(value=ast.Constant(value=str())) as docstring, *_]:
                docstrings.add((docstring.lineno, docstring.col_offset))
    tokens = code_tokens(tokenize.generate_tokens(io.StringIO(text).readline), docstrings)
    return tokens + sum(len(table.split()) for table in tables(tree, texts))


def tables(tree: ast.AST, texts: dict[str, str]) -> Iterator[str]:
    """Strings that are split, where they stand or by the name that a string was given."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=table, attr="split" | "splitlines")):
                while isinstance(table, ast.Call) and isinstance(table.func, ast.Attribute):
                    table = table.func.value  # "...".strip().split()
                match table:
                    case ast.Constant(value=str(text)):
                        yield text
                    case ast.Name(id=name):
                        yield texts.get(name, "")


def code_tokens(tokens: Iterable[tokenize.TokenInfo], docstrings: set[tuple[int, int]]) -> int:
    """Tokens that are code: an f-string is one, on every Python."""
    count = 0
    depth = 0
    for token in tokens:
        if token.type in STARTS:
            depth += 1
        elif token.type in ENDS:
            depth -= 1
        if depth == 0 and token.type not in SILENT and token.start not in docstrings:
            count += 1
    return count


def c_tokens(text: str) -> int:
    """Tokens of C, those of a macro and of a line for the preprocessor too."""
    return sum(bool(token["code"]) for token in C_TOKEN.finditer(text))


def shell_tokens(text: str) -> int:
    """What stands between blanks in a script or a Makefile, comments left out."""
    lines = (line.split() for line in text.splitlines() if not line.lstrip().startswith("#"))
    return sum(word != "\\" for line in lines for word in line)


COUNTED = (
    dict.fromkeys(PYTHON, python_tokens)
    | dict.fromkeys(C, c_tokens)
    | dict.fromkeys(SHELL, shell_tokens)
)


too_long: list[str] = []


def tokens_of(path: Path) -> int:
    """Tokens of code of a file, which is noted if it is too long."""
    ending = path.suffix or path.name
    if ending in NO_CODE or path.is_symlink():
        return 0
    counted = COUNTED.get(ending)
    if counted is None:
        sys.exit(f"{path}: is {ending} source? expected it in PYTHON, C, SHELL or NO_CODE")
    text = path.read_text(encoding="utf-8")
    if (lines := text.count("\n")) > LONGEST:
        too_long.append(f"{path} has {lines} lines, expected at most {LONGEST}")
    return counted(text)


if __name__ == "__main__":
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout
    weight: Counter[str] = Counter()
    for path in map(Path, listed.splitlines()):
        if path.exists():
            part = "product" if path.parts[0] in PRODUCT else "all-else"
            weight[part] += tokens_of(path)
    limits = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["te-select"]["weight"]
    for part, limit in limits.items():
        print(f"{part}: {weight[part]} tokens of {limit}")
    over = [part for part, limit in limits.items() if weight[part] > limit * SLACK]
    if over or weight.keys() - limits.keys():
        sys.exit(f"too heavy: {', '.join(over)}; a feature pays for its tokens by what it removes")
    if too_long:
        sys.exit("\n".join(too_long))
