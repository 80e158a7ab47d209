"""Refuse unrelated things that are assigned in one statement, and a text or list times a bool."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TEXTS = (ast.JoinedStr, ast.List, ast.Tuple)
COMPUTED = (ast.Name, ast.Call, ast.JoinedStr, ast.Lambda)
ASKING = {"all", "any", "bool", "callable", "hasattr", "isinstance"}


def packed(tree: ast.AST) -> Iterator[str]:
    """What a reader would want on lines of its own, by line."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets), *_], value=ast.Tuple(elts=values)):
                if not (are_read(targets, values) or are_alike(values)):
                    yield f"{node.lineno}: assigns unrelated things; expected a line for each"
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                if (is_text(left) and is_flag(right)) or (is_text(right) and is_flag(left)):
                    yield f"{node.lineno}: multiplies by a bool; expected `x if flag else y`"


def are_read(targets: list[ast.expr], values: list[ast.expr]) -> bool:
    """Whether a target is read on the right, as in a swap."""
    read = {ast.unparse(part) for value in values for part in ast.walk(value)}
    return any(ast.unparse(target) in read for target in targets)


def are_alike(values: list[ast.expr]) -> bool:
    """Whether the values are literals, calls of one function, or parts of one object."""
    return len({shared(value) for value in values}) == 1 and shared(values[0]) != ""


def shared(value: ast.expr) -> str:
    """What a value has in common with those like it; nothing if it is alone."""
    match value:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return f"call of {name}"
        case ast.Attribute(value=whole) | ast.Subscript(value=whole):
            return f"part of {ast.unparse(whole)}"
        case ast.BinOp(left=folder, op=ast.Div(), right=ast.Constant(value=str())):
            return f"path in {ast.unparse(folder)}"
    return "" if any(isinstance(part, COMPUTED) for part in ast.walk(value)) else "literal"


def is_text(node: ast.expr) -> bool:
    """Whether an expression is a string, bytes, a list or a tuple."""
    return isinstance(node, TEXTS) or isinstance(getattr(node, "value", None), str | bytes)


def is_flag(node: ast.expr) -> bool:
    """Whether an expression is a bool, by its form or by its name."""
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in ASKING
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.startswith(("is_", "has_"))
    return False


if __name__ == "__main__":
    listed = subprocess.run(["git", "ls-files", "*.py"], capture_output=True, check=True).stdout
    paths = [path for path in map(Path, listed.decode().splitlines()) if path.exists()]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    found = [f"{path}:{line}" for path, tree in trees.items() for line in packed(tree)]
    print(*found, sep="\n")
    sys.exit(bool(found))
