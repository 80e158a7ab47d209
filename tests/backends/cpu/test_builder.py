"""What the build of a library for CPUs passes on: configs and required features."""

import dataclasses

from pytest import mark, raises

from te_select import ToolchainError
from te_select.backends.cpu import link
from te_select.backends.targets import resolve
from te_select.compiler.build import build_scheduled
from te_select.compiler.family_library import build_family
from te_select.compiler.scheduling import schedule
from tests.support import flat, flat_and_scalar
from tests.support.machines import on_x86_64
from tests.support.tuning import default_of

V3 = resolve("x86-64-v3")


@on_x86_64
def test_config_of_each_kernel_reaches_the_library(tmp_path, monkeypatch):
    workloads = [flat_and_scalar(n, "int8") for n in (5, 1 << 22)] + [flat("n")]
    entries = {}
    monkeypatch.setattr(link, "stub_source", lambda given, *_: entries.update(given))
    monkeypatch.setattr("te_select.backends.cpu.builder.link_stub", lambda *_: None)
    configs = []
    for k, workload in enumerate(workloads):
        default = default_of(workload, V3)
        knobs = {"bytes_per_thread": 1000 * k, "stream_from": 7 * k, "skip": -(k % 2)}
        configs.append(dataclasses.replace(default, **knobs, backwards=k % 2))
    chosen = [
        schedule(workload, V3, config=dataclasses.asdict(config))
        for workload, config in zip(workloads, configs, strict=True)
    ]
    build_scheduled(chosen, tmp_path / "x.so", V3)
    assert list(entries) == workloads
    versions = [version for of_one in entries.values() for version in of_one]
    assert [dataclasses.astuple(version.decisions) for version in versions] == [
        (0, 0, 0, 0, True),
        (1000, 7, -1, 1, True),
        (2000, 14, 0, 0, True),
    ]
    assert len({version.symbol for version in versions}) == 3


@mark.parametrize(
    "shared, name",
    [
        (link._SHARED, "TE_SELECT_SKIP"),
        (link._SHARED, "offsetof(te_select_knobs, skip)"),
        (link._SHARED_BY_FAMILY, "TE_SELECT_LONG_ROW_BYTES"),
    ],
)
def test_c_half_with_another_number_is_not_linked(shared, name, monkeypatch):
    monkeypatch.setitem(shared, name, shared[name] + 8)
    with raises(ToolchainError, match="assert"):
        build_family(["w16"], "native")


@mark.parametrize(
    "target, has, lacks",
    [
        ("x86-64", "", "sse4_2 avx2"),
        ("x86-64-v2", "pni ssse3 sse4_1 sse4_2 popcnt", "avx2"),
        ("x86-64-v3", "sse4_2 avx avx2 bmi1 bmi2 fma f16c abm movbe", "avx512bw"),
        ("x86-64-v4", "avx2 avx512f avx512bw avx512cd avx512dq avx512vl", "avx512vbmi"),
        ("znver5", "avx2 avx512_vpopcntdq", "xop"),
        ("bdver4", "xop fma4 tbm sse4a", "avx512f"),
        ("aarch64:ampere1c", "bf16 crc32 cssc i8mm lrcpc sha3", "mops"),
        ("aarch64:c1-pro", "asimddp asimdhp asimdrdm mops", "cssc"),
    ],
)
def test_manifest_asks_for_what_code_generation_may_use(target, has, lacks):
    """Names are those of /proc/cpuinfo. A feature that is missing here ends a process by SIGILL."""
    found = set(resolve(target).cpu_features)
    assert {*has.split()} <= found
    assert not found.intersection(lacks.split())
