"""The names of entries in the cache: they change with the records of the family, and only those."""

from te_select.records import folders
from te_select.records.folders import SESSIONS
from te_select.selecting.kernels.library import _holds, entry


def write(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SESSIONS).write_text(text)


def test_every_change_of_a_record_is_another_name(own_records):
    names = [entry("w4")]
    for root in (own_records, folders.SHIPPED):
        for text in ("one\n", "one\ntwo\n"):
            write(root / "where" / "znver5", text)
            names.append(entry("w4"))
    assert len(set(names)) == len(names) == 5
    (own_records / "where" / "znver5").rename(own_records / "where" / "znver4")
    assert entry("w4") not in names
    assert all(_holds(name, "w4") for name in names)


def test_outcome_that_is_unsure_makes_no_other_name(own_records):
    names = [entry("w4")]
    unsure = '{"unsure": "noise"}', '{"unsure":"spread"}'
    sure = "{}", '{"unsure": ""}', '{"cond": "\\"unsure\\": "}', '{"unsure": ', "[" * 10**5
    for said in unsure + sure:
        write(own_records / "where" / "znver5", said)
        names.append(entry("w4"))
    assert names[0] == names[1] == names[2]
    assert len(set(names)) == 1 + len(sure)


def test_records_of_other_kernels_make_no_other_name(own_records):
    before = entry("w4")
    write(own_records / "znver5", "one\n")
    assert entry("w4") == before


def test_name_needs_no_home(own_records, monkeypatch):
    before = entry("w4")
    monkeypatch.setenv("XDG_DATA_HOME", "~no-such-user")
    assert entry("w4") == before


def test_logs_that_cannot_be_read_are_left_to_the_build(own_records):
    before = entry("w4")
    (own_records / "where" / "znver5" / SESSIONS).mkdir(parents=True)
    assert entry("w4") == before
