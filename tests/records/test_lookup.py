"""Which record a workload is compiled with, and why."""

import dataclasses
from json import dumps, loads

from pytest import mark, raises, warns

import te_select
from te_select import TuningError, Workload
from te_select.backends.targets import resolve
from te_select.compiler.scheduling import schedule
from te_select.operator.access import access_pattern
from te_select.records import folders, log, writer
from te_select.records.lookup import find
from te_select.records.origin import NONE_NEAR, NOT_ASKED
from te_select.records.sizes import representative
from tests.support import flat, flat_and_scalar, masked_rows, script, tuning
from tests.support.tuning import default_of, edit, of_another_tvm, only

NEAR_BY = "tuned for x86-64-v4 with the same loops and element width"
DEFAULT_WON = "the default was the best of 3 configs"
V3, V4 = resolve("x86-64-v3"), resolve("x86-64-v4")


def add(logs, workload, target=V4, session=None, **knobs):
    """Record a config that differs from the default, so that it is seen to be taken."""
    return tuning.add(logs, workload, target, session, **knobs or {"unroll": 2})


def rows(count, length):
    """Rows of then, each selected by one cond."""
    return masked_rows(count, length)


def origin(workload, logs, target=V4):
    found = find(workload, target, logs)
    assert (found.config is None) == (found.origin == "default")
    return None if found.config is None else found.origin


def test_own_record_comes_first(tmp_path):
    add(tmp_path, flat(5_000), session={"seconds": 2e-3})
    config = add(tmp_path, flat(20_000))
    add(tmp_path, flat(20_001), unroll=1)
    found = find(flat(20_000), V4, tmp_path)
    assert (found.config, found.origin) == (config, "tuned:x86-64-v4/w4_20000cte")
    assert found.why == f"this access pattern was tuned for x86-64-v4: {DEFAULT_WON}"
    found = find(flat(10_000), V4, tmp_path)
    assert found.origin.endswith("w4_20000cte")  # the faster of two that are as near
    assert found.why == f"{NEAR_BY}, 2 times apart in size (10,000 elements): {DEFAULT_WON}"


@mark.parametrize(
    "recorded, asked, taken",
    [
        ([20_000], flat(20_000, "int32"), "tuned:x86-64-v4/w4_20000cte"),
        ([6_000, 30_000, 90_000], flat(40_000), "nearest:x86-64-v4/w4_30000cte"),
        ([6_000, 30_000, 90_000], flat(4_000), "nearest:x86-64-v4/w4_6000cte"),
        ([5_000], flat(20_000), "nearest:x86-64-v4/w4_5000cte"),  # 4 times the size is near
        ([5_000], flat(20_001), None),
        ([5_000], flat(1250), "nearest:x86-64-v4/w4_5000cte"),
        ([5_000], flat(1249), None),
        ([15_000], flat(30_000), None),  # the one for several threads, the other not
        ([100_000], flat(150_000), None),  # the one stores past the cache, the other not
        ([rows(99_999, 3)], rows(99_999, 5), None),  # of other pieces
        ([20_000], flat(20_000, "float64"), None),
        ([20_000], flat_and_scalar(20_000), None),
        ([20_000], Workload((1, 20_000), (3, 20_000), (3, 20_000)), None),
        ([rows(8, 512)], rows(16, 1024), "nearest:x86-64-v4/w4_8ct_512t"),  # 2 times 2
        ([rows(8, 512)], rows(24, 1024), None),
        ([rows(8, 512)], rows(8, 0), None),
        ([rows(8192, 512)], rows("n", 1024), "nearest:x86-64-v4/w4_8192ct_512t"),
    ],
    ids=str,
)
def test_record_serves_its_loops_and_width_at_near_sizes(tmp_path, recorded, asked, taken):
    for each in recorded:
        add(tmp_path, flat(each) if isinstance(each, int) else each)
    assert origin(asked, tmp_path) == taken


def test_record_in_a_folder_of_its_digest_is_its_targets(tmp_path, monkeypatch):
    """Targets in JSON have folders that are named by ten digits."""
    add(tmp_path, flat(20_000))
    (tmp_path / V4.name).rename(tmp_path / "target-0123456789")
    monkeypatch.setattr("te_select.records.folders.of_target", lambda target: "target-0123456789")
    other = resolve({"kind": "llvm", "mcpu": "x86-64-v4", "mattr": ["-avx512vbmi"]})
    assert origin(flat(20_000), tmp_path, V4) == "tuned:target-0123456789/w4_20000cte"
    assert origin(flat(20_000), tmp_path, other) is None


def test_log_without_a_usable_line_of_the_target_is_refused(tmp_path):
    add(tmp_path, flat(20_000))
    (tmp_path / "znver5").mkdir()
    (tmp_path / "znver5" / log.SESSIONS).write_text("no log\n")
    assert origin(flat(90_000), tmp_path) is None
    (tmp_path / V4.name / log.SESSIONS).write_text("no log\n")
    with raises(TuningError, match="holds no usable line"):
        origin(flat(20_000), tmp_path)


def test_named_size_takes_the_closest_record_of_both_folders(tmp_path, monkeypatch):
    roots = [tmp_path / "own", tmp_path / "shipped"]
    monkeypatch.setattr("te_select.records.folders.default_folders", lambda _: roots)
    named = flat("n")
    size = access_pattern(representative(named)).elements
    add(roots[0], flat(size // 8))
    add(roots[1], flat(size // 2))
    assert origin(named, None) == f"nearest:x86-64-v4/w4_{size // 2}cte"
    assert find(named, V4).why == f"{NEAR_BY} (sizes known at call time): {DEFAULT_WON}"
    add(roots[0], flat(size // 2), session={"seconds": 2e-3}, unroll=1)
    assert find(named, V4).config.unroll == 1  # equally near: the user's


def test_named_size_takes_a_record_of_a_range_before_others(tmp_path):
    named = flat("n")
    size = access_pattern(representative(named)).elements
    add(tmp_path, flat(size))
    add(tmp_path, flat(2), session={"sizes": "n=10:100000"})
    assert origin(named, tmp_path) == "tuned:x86-64-v4/w4_2cte"
    assert origin(flat(size), tmp_path) == f"tuned:x86-64-v4/w4_{size}cte"
    for other in (flat(2), flat("m"), Workload(("n", 2), ("n", 2), ())):
        assert origin(other, tmp_path) != "tuned:x86-64-v4/w4_2cte"


def test_why_tells_of_the_cond_and_the_sizes_tuned_for(tmp_path):
    said = {"default_seconds": 2e-3, "trials": 9, "cond": "mask.npy (sha256 0)", "sizes": "n=1:9"}
    add(tmp_path, flat(2), session=said)
    why = find(flat("n"), V4, tmp_path).why
    of_what = "cond mask.npy (sha256 0); sizes n=1:9"
    assert why.endswith(f": 2.00x the speed of the default, the best of 9 configs ({of_what})")


def test_record_of_another_model_of_cpu_is_not_used(tmp_path):
    own = {"stream_from": 1 << 20, "bytes_per_thread": 1 << 16, "skip": 0, "backwards": 0}
    tuned = add(tmp_path, flat(1 << 20), resolve("znver4"), unroll=2, **own)
    assert find(flat(1 << 20), resolve("znver4"), tmp_path).config == tuned
    for other in (V4, resolve("znver5"), resolve("emeraldrapids")):
        found = find(flat(1 << 20), other, tmp_path)
        assert (found.origin, found.why) == ("default", NONE_NEAR)


def test_record_of_a_level_leaves_machine_knobs_open(tmp_path):
    """Many models of machine have one level."""
    large = flat(1 << 20)
    add(tmp_path, large, V4, unroll=2, stream_from=0)
    tuned = dataclasses.replace(default_of(large), unroll=2)
    assert find(large, V4, tmp_path).config == tuned


def no_record_serves(logs, said):
    """A warning says why, and then there is an error."""
    with (
        warns(RuntimeWarning, match=said),
        raises(TuningError, match="no record that this te_select can use"),
    ):
        find(flat(20_000), V4, logs)


@mark.parametrize(
    "knob, value",
    [
        ("bytes_per_thread", -2), ("backwards", 2), ("piece", 0), ("vector_bytes", 48),
        ("unroll", 3), ("rows", 1), ("skip", 7), ("parallel", 1),
    ],
)  # fmt: skip
def test_record_of_an_unfit_config_is_left_out_with_a_warning(tmp_path, knob, value):
    add(tmp_path, flat(20_000))
    entry = only(tmp_path / V4.name)
    line = dumps({**entry.session, "config": {**entry.config, knob: value}})
    edit(tmp_path / V4.name, lambda lines: lines.__setitem__(0, line))
    said = rf"1 of \d records are left out \(w4_20000cte: its config does not fit.*\b{knob}\b"
    no_record_serves(tmp_path, said)
    add(tmp_path, flat(15_000))
    with warns(RuntimeWarning, match=said):
        assert origin(flat(20_000), tmp_path) == "nearest:x86-64-v4/w4_15000cte"


def test_records_of_another_tvm_are_refused(tmp_path):
    add(tmp_path, flat(20_000))
    entry = only(tmp_path / V4.name)
    writer.put(tmp_path / V4.name, [of_another_tvm(entry)])
    no_record_serves(tmp_path, r"records are left out .*of TVM 0\.1")


@mark.parametrize(
    "make, said",
    [
        (lambda path: None, "te-select tune has written"),
        (lambda path: path.touch(), "te-select tune has written"),
        (lambda path: path.mkdir(), "holds no record"),
    ],
)
def test_folder_without_records_is_refused(tmp_path, make, said):
    make(tmp_path / "logs")
    with raises(TuningError, match=said):
        te_select.compile(flat(8), tuning_logs=tmp_path / "logs")


def test_false_reads_no_logs(tmp_path, monkeypatch):
    monkeypatch.setattr("te_select.records.folders.SHIPPED", tmp_path)
    config = add(tmp_path, flat(20_000))
    assert schedule(flat(20_000), V4).config == config
    found = find(flat(20_000), V4, False)
    assert (found.origin, found.why) == ("default", NOT_ASKED)


def test_shipped_folder_lies_in_the_package():
    assert (folders.SHIPPED / "README.md").is_file()


NO_TARGETS = (
    {"mtriple": "foo-bar-baz"},  # LLVM ends the process over it
    {"mcpu": "nonsense"},
    {"mattr": ["+zzz"]},
    {"mattr": 5},
    {"jit": "zz"},
    {"vector-width": 99_999},
    {"kind": ["llvm"]},
    {"kind": "cuda", "arch": "sm_xx"},
    {"kind": None},
)
FIND = """
    import sys
    from te_select import Workload
    from te_select.backends.targets import resolve
    from te_select.records.lookup import find

    shape = (int(sys.argv[2]),)
    print(find(Workload(shape, shape, shape), resolve(sys.argv[3]), sys.argv[1]).origin)
"""


def test_records_of_bad_targets_are_left_out_with_a_warning(tmp_path):
    add(tmp_path, flat(20_000))
    entry = only(tmp_path / V4.name)
    with (tmp_path / V4.name / log.SESSIONS).open("a") as file:
        for number, wrong in enumerate(NO_TARGETS, 19_000):
            target = dumps({**loads(entry.target), **wrong})
            workload = flat(number).to_json()
            odd = {**entry.session, "target": target, "workload": workload}
            file.write(dumps(odd) + "\n")
    done = script(FIND, tmp_path, "20000", V4.name)
    assert done.stdout == "tuned:x86-64-v4/w4_20000cte\n", done.stderr
    assert f"{len(NO_TARGETS)} of {len(NO_TARGETS) + 1} records are left out" in done.stderr
