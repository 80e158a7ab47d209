"""Import and prune: what is taken, what is refused, and what is dropped."""

from pytest import raises

from te_select import TuningError
from te_select.records import log
from te_select.records.folders import SESSIONS
from te_select.records.manage import merge, prune
from te_select.records.writer import put
from tests.support import flat
from tests.support.tuning import BIG, FEW, ROWS, SMALL, V4, edit, keys, make, of_another_tvm, only


def test_import_takes_faster_records_that_can_be_used_here(tmp_path, entries):
    source, mine = tmp_path / "source", tmp_path / "mine"
    odd = [make(flat(64)), make(flat(128))]
    put(source / V4.name, [*odd, make(BIG, 2e-3), make(SMALL, 5e-4), make(FEW)])

    def change(lines):
        lines[0] = lines[0].replace('"unroll"', '"unrolled"')
        lines[1] = lines[1].replace('\\"kind\\": \\"llvm', '\\"kind\\": \\"vulkan')

    edit(source / V4.name, change)
    put(source / "znver5", [of_another_tvm(make(ROWS))])
    put(mine / V4.name, entries[:2])
    merged = merge(source, mine)
    assert merged.taken == [f"{V4.name}/w4_1024cte", f"{V4.name}/w4"]
    assert merged.kept == [f"{V4.name}/w4_48t_1048576ct"]
    said = ("does not fit the schedule", "of no kind of machine", "it is of TVM 0.1")
    assert all(why in line for why, line in zip(said, merged.refused, strict=True))
    assert log.read(mine / V4.name).entries[1].seconds == 5e-4


def test_only_records_that_beat_the_default_are_copied_if_asked(tmp_path):
    source = tmp_path / "source" / V4.name
    won = make(BIG, default_seconds=2e-3)
    unsure = make(ROWS, default_seconds=2e-3, unsure="the rounds lay 80% apart")
    put(source, [won, unsure, make(SMALL), make(FEW)])
    merged = merge(tmp_path / "source", tmp_path / "mine", better=True)
    assert (merged.taken, merged.refused) == ([f"{V4.name}/{won.key}"], [])
    assert len(merge(tmp_path / "source", tmp_path / "whole").taken) == 4
    assert len(merge(tmp_path / "source", tmp_path / "all", "x*-v4", "w4_*").taken) == 3


def test_import_replaces_a_faster_record_of_another_tvm(tmp_path):
    put(tmp_path / "source" / V4.name, [make(SMALL, 1e-3)])
    put(tmp_path / "mine" / V4.name, [of_another_tvm(make(SMALL, 5e-4))])
    merged = merge(tmp_path / "source", tmp_path / "mine")
    assert (merged.taken, merged.kept) == ([f"{V4.name}/w4_1024cte"], [])
    entry = only(tmp_path / "mine" / V4.name)
    assert entry.seconds == 1e-3


def test_import_of_nothing_is_an_error(tmp_path):
    with raises(TuningError, match="is missing"):
        merge(tmp_path / "none", tmp_path)
    with raises(TuningError, match="no record of target"):
        merge(tmp_path, tmp_path / "mine")
    assert not any(merge(tmp_path, tmp_path / "mine", better=True))


def test_prune_drops_what_no_compilation_uses(tmp_path, entries):
    folder = tmp_path / V4.name
    put(folder, [entries[0], of_another_tvm(entries[1]), entries[2]])
    edit(folder, lambda lines: lines.append("torn"))
    gone = prune(tmp_path)
    assert keys(folder) == [entries[0].key, entries[2].key]
    assert len(gone) == 2
    assert prune(tmp_path) == []


def test_prune_says_that_a_file_without_records_stays(tmp_path):
    file = tmp_path / "znver3" / SESSIONS
    file.parent.mkdir()
    file.write_text("garbage")
    for _ in range(2):
        (line,) = prune(tmp_path)
        assert "no usable line" in line and line.endswith("; left as it is")
    assert file.read_text() == "garbage"


def test_prune_of_a_target_leaves_the_others(tmp_path, entries):
    old = of_another_tvm(entries[0])
    for name in (V4.name, "znver5"):
        put(tmp_path / name, [old])
    (line,) = prune(tmp_path, "znver*")
    assert line.startswith(f"znver5/{old.key}: ")
    assert (keys(tmp_path / "znver5"), keys(tmp_path / V4.name)) == ([], [old.key])
