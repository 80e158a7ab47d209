"""Reading records: lines that are damaged, edited, moved or merged."""

import itertools
import random
import re
from json import dumps
from os import utime

from pytest import mark, raises, warns
from tvm.s_tir import meta_schedule as ms

import te_select
from te_select.records.folders import SESSIONS, of_target
from te_select.records.log import Damage, Log, read
from te_select.records.writer import put
from tests.support import flat
from tests.support.tuning import FEW, V4, edit, keys, make

COUNT = 12
OF_0_2 = {"record": "w4", "config": {}, "default_seconds": 1e-3, "trials": 3, "failed": 0}


@mark.parametrize(
    "wrong",
    [
        "{",
        "[1]",
        "7",
        "{}",
        dumps({"record": "w4"}),
        dumps({"workload": "w"}),
        *(
            {"default_seconds": value}
            for value in ("x", {}, float("inf"), 0.0, 1e-38, -1.0, 1, 1e38)
        ),
        *({name: value} for name in ("trials", "failed") for value in (float("inf"), -1, "x")),
        *({"config": value} for value in (None, {"vector_bytes": [1]}, {"unroll": 1.5})),
        *({"target": value} for value in ("llvm", "[]", {"kind": "llvm"})),
        *({"workload": value} for value in (None, [], {"cond_shape": [1]}, flat("n").to_json())),
        {"versions": {}},
        {"trials": True},
        *({name: 5} for name in ("machine", "busy_cores", "spread", "cond", "sizes", "unsure")),
        *({name: 5} for name in ("record", "command", "accepted", "digest")),
    ],
    ids=str,
)
def test_damaged_line_is_reported_and_the_rest_is_used(tmp_path, entries, wrong):
    put(tmp_path, entries)
    line = wrong if isinstance(wrong, str) else dumps({**entries[1].session, **wrong})
    edit(tmp_path, lambda lines: lines.__setitem__(1, line))
    found = read(tmp_path)
    assert [entry.key for entry in found.entries] == [entries[0].key, entries[2].key]
    assert [damage.line for damage in found.damaged] == [2]
    with warns(RuntimeWarning, match=r"sessions\.json line 2 is left out: "):
        found.warn()


def test_line_of_0_2_is_named_and_kept(tmp_path, entries):
    put(tmp_path, entries)
    old = dumps(OF_0_2 | {"workload": str(FEW)})
    edit(tmp_path, lambda lines: lines.insert(0, old))
    (complaint,) = read(tmp_path).complaints()
    assert complaint.endswith("it is of te-select 0.2; tune its workload again")
    put(tmp_path, [make(FEW)])
    assert old in (tmp_path / SESSIONS).read_text().splitlines()


@mark.parametrize("data", [b"\x7fELF\x00\xff" * 9, b"{}\n", b"no\nlog\n"])
def test_file_without_a_usable_line_is_no_log(tmp_path, entries, data):
    put(tmp_path, entries)
    (tmp_path / SESSIONS).write_bytes(data)
    with raises(te_select.TuningError, match=r"holds no usable line \(line 1: ") as caught:
        read(tmp_path)
    assert "\n" not in str(caught.value)


@mark.parametrize("how", ["in place", "another file"])
def test_file_that_was_rewritten_is_read_again(tmp_path, entries, how):
    """As many bytes, and in the one case as old."""
    put(tmp_path, entries)
    before = read(tmp_path)
    path = tmp_path / SESSIONS
    first, *rest = path.read_text().splitlines()
    text = "\n".join([" " * len(first), *rest]) + "\n"
    stamp = path.stat()
    if how == "in place":
        path.write_text(text)
        utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    else:
        (tmp_path / "other").write_text(text)
        utime(tmp_path / "other", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        (tmp_path / "other").replace(path)
    assert path.stat().st_size == stamp.st_size
    assert read(tmp_path) != before


def test_targets_that_are_json_have_folders_too():
    assert of_target("znver5") == "znver5"
    assert of_target('{"kind": "llvm", "mattr": ["-avx2"]}') == "target-8bec512dac"


# ---- lines that were deleted, moved, doubled or merged


def conflict(lines):
    """The markers that git leaves if two branches have changed the same lines."""
    middle = len(lines) // 2
    lines[middle:middle] = ["<<<<<<< HEAD"]
    lines.insert(middle + 3, "=======")
    lines.insert(middle + 6, ">>>>>>> tuned-elsewhere")


EDITS = {
    "a deleted line": lambda lines: lines.pop(0),
    "a deleted line in the middle": lambda lines: lines.pop(COUNT // 2),
    "two that changed places": lambda lines: lines.insert(0, lines.pop(3)),
    "a shuffle": lambda lines: random.Random(1).shuffle(lines),
    "a line twice": lambda lines: lines.insert(2, lines[1]),
    "a merge conflict": conflict,
}


@mark.parametrize("change", EDITS)
def test_moved_lines_are_the_same_records_and_a_write_mends_all(tmp_path, change):
    made = [make(each) for each in map(flat, range(100, 100 + COUNT))]
    folder = tmp_path / "logs" / V4.name
    put(folder, made)
    edit(folder, EDITS[change])
    found = read(folder).entries
    assert all(entry in made for entry in found)
    assert len(found) == len(made) - ("deleted" in change)
    put(folder, [make(flat(7))])
    assert len(keys(folder)) == len(found) + 1
    database = ms.database.JSONDatabase(work_dir=str(folder)).get_all_tuning_records()
    assert len(database) == len(found) + 1


def test_last_of_several_lines_is_the_record(tmp_path, entries):
    """A merge of two branches may leave both."""
    put(tmp_path, entries)
    later = make(entries[1].workload, 2e-3, trials=77)
    edit(tmp_path, lambda lines: lines.append(dumps(later.session)))
    assert read(tmp_path).entries == (entries[0], later, entries[2])


def test_line_that_was_changed_by_hand_is_edited(tmp_path, entries):
    put(tmp_path, entries)
    assert not any(entry.edited for entry in read(tmp_path).entries)
    for name, value in itertools.product(("seconds", "default_seconds"), (1e-4, 2e-3)):
        line = dumps({**entries[0].session, name: value})
        edit(tmp_path, lambda lines, line=line: lines.__setitem__(0, line))
        assert [entry.edited for entry in read(tmp_path).entries] == [True, False, False]
    edit(tmp_path, lambda lines: lines.append(lines.pop().replace('"digest"', '"lost"')))
    assert read(tmp_path).entries[-1].edited


def test_record_holds_what_its_line_says(tmp_path):
    said = {"default_seconds": 9e-3, "trials": 7, "failed": 2, "busy_cores": 0.25, "spread": 0.125}
    said |= {"cond": "a mask", "sizes": "n=1:9"}
    put(tmp_path / "x86-64-v4", [make(flat(8), 1e-3, **said)])
    (record,) = read(tmp_path / "x86-64-v4").entries
    assert {name: getattr(record, name) for name in said} == said
    assert (record.name, record.workload) == ("x86-64-v4/w4_8cte", flat(8))
    assert (record.unsure, record.gain) == ("", 9.0) and not record.default_won


@mark.parametrize("lines, more", [(1, ""), (2, "; so are 1 more"), (3, "; so are 2 more")])
def test_warning_has_the_first_damaged_line_and_counts_others(tmp_path, lines, more):
    damaged = tuple(Damage(k + 1, f"reason {k}", b"") for k in range(lines))
    said = f"line 1 is left out: reason 0{more} (te-select logs list)"
    with warns(RuntimeWarning, match=re.escape(said)):
        Log(tmp_path, (), damaged).warn()
