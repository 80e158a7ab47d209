"""Assembly for people: LLVM's output without what describes it to a debugger."""

from __future__ import annotations

import re

_NOTES = (".loc", ".file", ".cfi_")
_SECTION = re.compile(r"\s+\.(?:section\s+(\S+?)(?:,|\s|$)|text\b|data\b|bss\b)")
_LABEL = re.compile(r"(\.L(?:tmp|func_begin|func_end)\d+):")


def without_notes(assembly: str) -> str:
    """Drop debug sections, line numbers, and labels that only these refer to.

    Parameters
    ----------
    assembly
        What LLVM made.

    Returns
    -------
    str
        The same code.
    """
    lines, debug = [], False
    for line in assembly.splitlines():
        if found := _SECTION.match(line):
            debug = (found[1] or "").strip('"').startswith(".debug_")
        if not debug and not line.lstrip().startswith(_NOTES):
            lines.append(line)
    text = "\n".join(lines)
    used = set(re.findall(r"\.L(?:tmp|func_begin|func_end)\d+(?!\d|:)", text))
    kept = (line for line in lines if not (label := _LABEL.match(line)) or label[1] in used)
    return "\n".join(kept) + "\n"
