"""Records for tests, made as a session makes them, and edits of their file by hand."""

import dataclasses

import tvm

from te_select.backends import schedule_of
from te_select.backends.targets import resolve
from te_select.operator.access import access_pattern
from te_select.records import folders, log, writer
from te_select.records.folders import SESSIONS
from te_select.schedules.cpu import schedule as cpu

V4 = resolve("x86-64-v4")


def record(workload, target, config, seconds=1e-3, **said):
    """A record of a config; if nothing else is said, the default was as fast."""
    found = {"config": dataclasses.asdict(config), "seconds": seconds, "default_seconds": seconds}
    found |= {"trials": 3, "failed": 0, "versions": {"tvm": tvm.__version__}}
    return log.make(workload, target, found | said)


def make(workload, seconds=1e-3, config=None, **said):
    """A record of a config, or of the default."""
    config = config or cpu.default_config(access_pattern(workload), V4.tvm)
    return record(workload, V4, config, seconds, **said)


def add(
    logs,
    workload,
    target=V4,
    said=None,
    **knobs,
):
    """Record a config of which these knobs differ from the default, and return it."""
    default = schedule_of(target.kind).default_config(access_pattern(workload), target.tvm)
    config = dataclasses.replace(default, **knobs)
    writer.put(
        logs / folders.of_target(target.records), [record(workload, target, config, **said or {})]
    )
    return config


def keys(folder):
    """The names of a folder's records, in their order."""
    return [entry.key for entry in log.read(folder).entries]


def edit(folder, change):
    """Change the lines of the records by hand."""
    path = folder / SESSIONS
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("".join(f"{line}\n" for line in lines))


def of_another_tvm(entry):
    """The record, as another TVM had found it."""
    kept = {k: v for k, v in entry.session.items() if k not in ("target", "digest")}
    return log.make(entry.workload, resolve(entry.target), kept | {"versions": {"tvm": "0.1"}})


def unfinished(folder):
    """The journals in a folder of which the last session is not done."""
    journals = {path.name: path.read_text().split("\n") for path in folder.glob("*.jsonl")}
    return [name for name, lines in journals.items() if '"config": {}' not in lines[-2]]
