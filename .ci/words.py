"""Refuse words that the glossary has retired, and names of tests that are too long to read."""

import re
import subprocess
import sys
from pathlib import Path

FOLDERS = ("te_select", "schedules", "tests", "benchmarks", "examples", "docs", "*.md", "*.toml")
ELSEWHERE = ("CHANGELOG.md",)  # it tells of what was there
LONGEST = 59  # characters of the name of a test
RETIRED = {
    r"\bfirst format\b": "nothing: no library of it was released",
    r"\bheld_off\b": "no_fork_during",
    r"\blimits\.explained\b": "limits.tvm_errors_as_ours",
    r"\b(free_cores|pool_backoff)\.[ch]\b": "pool_cores",
    r"\bkinds_of_tensors\b": "tensor_libraries",
    r"\bseam\.(family|alike|portable|effect)\b": "the name that schedules/seam.py has",
    r"\bte_select[./](machines|checking|functional|numpy_where)\b": "backends, verify or selecting",
    r"\b(none|None|empty|Empty|false|False) where\b": "if",
    r"\bwhere (there (is|are|was|were)|that is|it is not)\b": "if",
}


def wrong(text: str) -> "list[tuple[int, str]]":
    """The lines with a retired word or a name that is too long, and what is wrong with each."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for word, better in RETIRED.items():
            if match := re.search(word, line):
                found.append((number, f"{match[0]!r} is retired; say {better}"))
        if (name := re.match(r"\s*(async )?def (test_\w+)", line)) and len(name[2]) > LONGEST:
            found.append((number, f"{name[2]} has {len(name[2])} characters; expected {LONGEST}"))
    return found


if __name__ == "__main__":
    listed = subprocess.run(
        ["git", "ls-files", *FOLDERS], capture_output=True, text=True, check=True
    ).stdout.split()
    bad = 0
    for path in listed:
        if path in ELSEWHERE or Path(path).suffix not in {
            ".py",
            ".c",
            ".h",
            ".cuh",
            ".md",
            ".toml",
        }:
            continue
        for number, what in wrong(Path(path).read_text()):
            print(f"{path}:{number}: {what}")
            bad += 1
    sys.exit(bad > 0)
