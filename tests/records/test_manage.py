"""Import and prune: what is taken, what is refused, and what is dropped."""

import pytest

import te_select
from te_select.records import log, manage, writer
from tests.support.tuning_fakes import BIG, FEW, ROWS, SMALL
from tests.support.tuning_records import V4, edit, keys, make, of_another_tvm
from tests.support.workloads import flat


def test_import_takes_faster_records_that_can_be_used_here(tmp_path, entries):
    source, mine = tmp_path / "source", tmp_path / "mine"
    odd = [make(flat(64)), make(flat(128))]
    writer.put(source / V4.name, [*odd, make(BIG, 2e-3), make(SMALL, 5e-4), make(FEW)])

    def change(lines):
        lines[0] = lines[0].replace('"unroll"', '"unrolled"')
        lines[1] = lines[1].replace('\\"kind\\": \\"llvm', '\\"kind\\": \\"vulkan')

    edit(source / V4.name, change)
    writer.put(source / "znver5", [of_another_tvm(make(ROWS))])
    writer.put(mine / V4.name, entries[:2])
    merged = manage.merge(source, mine)
    assert merged.taken == [f"{V4.name}/w4_1024cte", f"{V4.name}/w4"]
    assert merged.kept == [f"{V4.name}/w4_48t_1048576ct"]
    said = ("does not fit the schedule", "of no kind of machine", "it is of TVM 0.1")
    assert all(why in line for why, line in zip(said, merged.refused, strict=True))
    assert log.read(mine / V4.name).entries[1].seconds == 5e-4


def test_only_records_that_beat_the_default_are_copied_if_asked(tmp_path):
    source = tmp_path / "source" / V4.name
    won = make(BIG, default_seconds=2e-3)
    unsure = make(ROWS, default_seconds=2e-3, unsure="the rounds lay 80% apart")
    writer.put(source, [won, unsure, make(SMALL), make(FEW)])
    merged = manage.merge(tmp_path / "source", tmp_path / "mine", better=True)
    assert (merged.taken, merged.refused) == ([f"{V4.name}/{won.key}"], [])
    assert len(manage.merge(tmp_path / "source", tmp_path / "all").taken) == 4


def test_import_replaces_a_faster_record_of_another_tvm(tmp_path):
    writer.put(tmp_path / "source" / V4.name, [make(SMALL, 1e-3)])
    writer.put(tmp_path / "mine" / V4.name, [of_another_tvm(make(SMALL, 5e-4))])
    merged = manage.merge(tmp_path / "source", tmp_path / "mine")
    assert (merged.taken, merged.kept) == ([f"{V4.name}/w4_1024cte"], [])
    (entry,) = log.read(tmp_path / "mine" / V4.name).entries
    assert entry.seconds == 1e-3


def test_import_of_nothing_is_an_error(tmp_path):
    with pytest.raises(te_select.TuningError, match="is missing"):
        manage.merge(tmp_path / "none", tmp_path)
    with pytest.raises(te_select.TuningError, match="no record of target"):
        manage.merge(tmp_path, tmp_path / "mine")


def test_prune_drops_what_no_compilation_uses(tmp_path, entries):
    folder = tmp_path / V4.name
    writer.put(folder, [entries[0], of_another_tvm(entries[1]), entries[2]])
    edit(folder, lambda lines: lines.append("torn"))
    gone = manage.prune(tmp_path)
    assert keys(folder) == [entries[0].key, entries[2].key]
    assert len(gone) == 2
    assert manage.prune(tmp_path) == []
