"""Records for tests, made as a session makes them, and edits of their files by hand."""

import base64
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from te_select import Workload
from te_select.backends.targets import resolve
from te_select.operator.access import access_pattern
from te_select.records import log, metaschedule
from te_select.records.log import Entry
from te_select.schedules.cpu import schedule as cpu

V4 = resolve("x86-64-v4")
SESSION = {"workload": "w", "trials": 3}


def make(workload: Workload, seconds: float = 1e-3, config: Any = None) -> Entry:
    """A record of a config, or of the default."""
    config = config or cpu.default_config(access_pattern(workload), V4.tvm)
    return metaschedule.entry(workload, V4, config, seconds, SESSION)


def flat(n: int, dtype: str = "float32") -> Workload:
    """One loop along which everything moves."""
    return Workload((n,), (n,), (n,), dtype)


def keys(folder: Path) -> list[str]:
    """The names of a folder's records, in their order."""
    return [entry.key for entry in log.read(folder).entries]


def edit(folder: Path, name: str, change: Callable[[list[str]], Any]) -> None:
    """Change the lines of a file by hand."""
    path = folder / name
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("".join(f"{line}\n" for line in lines))


def change_body(entry, change):
    body = json.loads(entry.body)
    change(body)
    return f"[1,{json.dumps(body)}]"


def of_another_tvm(entry):
    digest, encoded = json.loads(entry.workload)
    data = base64.b64decode(encoded)
    # Same length: the text is preceded by it.
    text = data.replace(entry.tvm.encode(), b"0.1".ljust(len(entry.tvm), b"x"))
    assert text != data
    return dataclasses.replace(
        entry, workload=json.dumps([digest, base64.b64encode(text).decode()])
    )
