"""Golden files: what a schedule makes of a workload, to be read.

``pytest tests/schedules --update-golden`` writes them anew, to be read in the diff of the change
that made them differ.
"""

import re
from re import sub

_SAID = re.compile(r"(# )?from|\s+T\.(reads|writes|func_attr)|\w+ = TypeVar|\s+# with")


def readable(script):
    """TVMScript without redundant parts: imports, reads and writes, types of ints.

    From Python 3.12 on, TVM writes the named dims of a function in brackets behind its name.
    """
    script = sub(r"(def \w+)\[[\w, ]+\]\(", r"\1(", script)
    kept = (line for line in script.splitlines() if not _SAID.match(line))
    text = sub(r"T\.int64\((\d+)\)", r"\1", "\n".join(kept))
    return sub(r'"te_select\.(knob\.\w+|pattern)": [^,}]+, ', "", text).strip()


def check(path, text, update):
    """Compare a text with a golden file; ``update`` writes the file first."""
    if update:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; see --update-golden"
