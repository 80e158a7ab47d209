"""Tuning for CUDA devices: search, records and the whole session, on a stand-in for the driver."""

import math
import random
from dataclasses import asdict

from pytest import fixture, mark, raises

from te_select import TuningError, Workload, tune
from te_select.backends.cuda import builder
from te_select.backends.targets import resolve
from te_select.compiler.scheduling import schedule
from te_select.operator.access import access_pattern
from te_select.records import folders, log
from te_select.records.lookup import find
from te_select.schedules.cuda import schedule as cuda
from te_select.timing.cuda.roof import SETS, sets_for
from te_select.tuning.measuring import measurer
from te_select.tuning.measuring.on_cuda import Cuda
from te_select.tuning.measuring.run_worker import Problem
from te_select.tuning.trials import UntunableError
from tests.support import cli, cuda_standin, flat, masked_rows, tuning
from tests.support.cuda_standin import fake_driver, running
from tests.support.tuning import FEW, ROWS, FakeMeasurer, flags_of, only

TARGET = "cuda:sm_90"
SM90, SM80, V4 = resolve(TARGET), resolve("cuda:sm_80"), resolve("x86-64-v4")
SMALL = masked_rows(64, 500)
FOLDER = "cuda-sm_90"


def add(logs, workload, target=SM90, **knobs):
    """Record a config that differs from the default, so that it is seen to be taken."""
    return tuning.add(logs, workload, target, **knobs or {"threads": 1024})


def origin(workload, logs, target=SM90):
    found = find(workload, target, logs)
    return None if found.config is None else found.origin


# ---- search


@mark.parametrize("workload", [FEW, ROWS, flat(300_000, "float16")], ids=str)
def test_configs_make_one_kernel_where_their_effect_is_one(workload):
    pattern = access_pattern(workload)
    by_effect, kernels = {}, {}
    for each in random.Random(1).sample(tuning.every_config(workload, SM90), 48):
        scheduled = schedule(workload, SM90, config=asdict(each))
        made = builder._lower(scheduled, "f")
        whole = (made.kernel, made.threads, made.blocks)
        effect = cuda.dedup_key(pattern, each)
        assert by_effect.setdefault(effect, whole) == whole
        assert kernels.setdefault(whole, effect) == effect


# ---- records


@mark.parametrize(
    "target, name",
    [
        (TARGET, FOLDER),
        ("cuda:sm_80,sm_90", FOLDER),
        ({"kind": "cuda", "arch": "sm_80"}, "cuda-sm_80"),
        ("x86-64-v4", "x86-64-v4"),
    ],
)
def test_records_of_several_archs_use_the_newest_ones_folder(target, name):
    assert folders.of_target(resolve(target).records) == name


def test_record_serves_its_own_arch_exactly_then_nearest(tmp_path):
    add(tmp_path, flat(1 << 24))
    own = f"{FOLDER}/w4_16777216cte"
    assert origin(flat(1 << 24, "int32"), tmp_path) == f"tuned:{own}"
    assert origin(flat(1 << 24), tmp_path, resolve("cuda:sm_80,sm_90")) == f"tuned:{own}"
    assert origin(flat(3 << 23), tmp_path) == f"nearest:{own}"
    assert origin(flat(1 << 24), tmp_path, SM80) is None
    assert origin(flat(1 << 20), tmp_path) is None


def test_records_of_cpus_and_cuda_never_serve_each_other(tmp_path):
    add(tmp_path, flat(1 << 20))
    assert origin(flat(1 << 20), tmp_path, V4) is None
    add(tmp_path / "other", flat(1 << 20), V4, unroll=2)
    assert origin(flat(1 << 20), tmp_path / "other") is None
    # Nor if someone has put it into the wrong folder.
    (tmp_path / "other" / V4.records).rename(tmp_path / "other" / FOLDER)
    assert origin(flat(1 << 20), tmp_path / "other") is None


# ---- sessions


def fake_measurer(monkeypatch):
    measurer = FakeMeasurer(lambda candidate: 1e-3 / candidate.config["vectors"])
    monkeypatch.setattr("te_select.tuning.session.open_measurer", lambda *_: measurer)
    return measurer


def test_session_records_the_fastest_and_the_device(tmp_path, monkeypatch):
    fake_measurer(monkeypatch)
    with fake_driver(90):
        found = tune(SMALL, TARGET, tuning_logs=tmp_path, trials=60, patient=True)
    assert found.config["vectors"] == 8
    assert found.name == f"{FOLDER}/w4_64ct_500t"
    entry = only(tmp_path / FOLDER)
    assert (entry.session["machine"], entry.session["cpus"]) == ("Fake GPU", None)
    assert "cuda_compiler" in entry.session["versions"]
    assert asdict(find(SMALL, SM90, tmp_path).config) == dict(found.config)


@mark.parametrize(
    "devices, target, message",
    [
        ((), TARGET, r"NVIDIA driver does not start.*run this on a machine with an NVIDIA GPU"),
        ((90,), "cuda:sm_80", "expected cuda:sm_90, or another .* CUDA_VISIBLE_DEVICES"),
        ((80,), TARGET, "device 0 is Fake GPU, of architecture sm_80; expected cuda:sm_80"),
        (
            (90,),
            "cuda:sm_80,sm_90",
            "names 2 .* expected one: .* those of cuda:sm_90",
        ),
        ((90,), f"{TARGET} by a fleet", "expected local"),
    ],
)
def test_target_that_cannot_run_here_is_refused_at_once(
    tmp_path, monkeypatch, devices, target, message
):
    measurer = fake_measurer(monkeypatch)
    target, _, fleet = target.partition(" by ")
    runner = "rpc://127.0.0.1:9/key" if fleet else "local"
    with fake_driver(*devices), raises(TuningError, match=message) as caught:
        tune(SMALL, target, tuning_logs=tmp_path, runner=runner)
    assert "\n" not in str(caught.value)
    assert not measurer.measured


@fixture
def workers(monkeypatch):
    """Workers that need neither a GPU nor a CUDA compiler."""
    monkeypatch.setattr(
        "te_select.tuning.measuring.measurer.BUILD_WORKER", "tests.support.tuning_cuda_builder"
    )
    monkeypatch.setattr(measurer, "RUN_WORKER", "tests.support.tuning_cuda_runner")
    monkeypatch.setattr("te_select.timing.cuda.clocks.SHORTEST_SAMPLE", 1e-5)
    for limit in ("SPREAD", "BROKEN"):  # these times are those of a busy machine
        monkeypatch.setattr(f"te_select.records.doubt.{limit}", math.inf)
    with fake_driver(90):
        yield


def test_workload_is_tuned_from_the_shell_beside_the_roof(tmp_path, workers):
    flags = ["--target", TARGET, "--trials", "3", "--all", "--tuning-logs", tmp_path]
    (outcome,) = cli.run_json("tune", *flags_of(SMALL), *flags)["workloads"]
    assert (outcome["record"]["trials"], outcome["record"]["failed"]) == (3, 0)
    assert outcome["roof_bytes_per_second"] > 0
    assert origin(SMALL, tmp_path) == f"tuned:{outcome['record']['name']}"


def test_kernel_that_computes_wrong_bits_is_never_recorded(tmp_path, workers):
    with raises(UntunableError, match=r"default config failed: out\["):
        tune(flat(70, "float64"), TARGET, tuning_logs=tmp_path, trials=2, jobs=1)
    assert log.read(tmp_path / FOLDER).entries == ()


# ---- places


@mark.parametrize("dtype", ["bool", "float8_e4m3fn", "bfloat16", "complex64", "complex128"])
def test_every_element_type_is_checked_and_timed_on_device(dtype, monkeypatch):
    monkeypatch.setattr("te_select.timing.cuda.clocks.SHORTEST_SAMPLE", 1e-5)
    workload = Workload((5, 1), (5, 33), (33,), dtype)
    with running(workload):
        kernel = cuda_standin.kernel(workload)
        place = Cuda(Problem(workload))
        assert place.check(kernel) == ""
        assert min(place.times({"a": kernel}, None)["a"].seconds) > 0
        turns = place.times({"a": kernel, "b": kernel}, 3)
        assert {name: len(each.seconds) for name, each in turns.items()} == {"a": 3, "b": 3}


def test_operands_go_round_so_that_the_cache_does_not_hold_them():
    with running(SMALL) as fake:
        kernel = cuda_standin.kernel(SMALL)
        call = Cuda(Problem(SMALL))._call(kernel)
        count = sets_for(access_pattern(SMALL).bytes_moved(), 1 << 20)
        assert 2 < count < SETS[1]
        assert [sets_for(moved, 50 << 20) for moved in (0, 8 << 20, 1 << 30)] == [32, 14, 2]
        seen = []
        for _ in range(2 * count):
            call()
            seen.append(tuple(fake.fake_last().contents.pointers))
        assert seen[:count] == seen[count:]
        assert len({then for _, then, *_ in seen}) == count


def test_device_without_memory_for_operands_is_a_tuning_error():
    with running(SMALL) as fake:
        fake.fake_fail(b"cuMemAlloc_v2", 2)
        with raises(TuningError, match="cannot be put on the device"):
            Cuda(Problem(SMALL))


def test_failing_launch_is_an_error_and_not_a_time(monkeypatch):
    with running(SMALL) as fake:
        kernel = cuda_standin.fresh_kernel(SMALL)
        place = Cuda(Problem(SMALL))
        assert place.check(kernel) == ""
        fake.fake_fail(b"cuLaunchKernel", 700)
        with raises(Exception, match="cannot be launched"):
            place.times({"a": kernel}, None)
