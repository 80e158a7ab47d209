"""The table of kinds: a made-up kind works everywhere, and no other module names a kind."""

import ast
import json
import sys

import numpy as np
from pytest import fixture, importorskip, mark, raises

import te_select
from te_select import Workload
from te_select.backends.targets import resolve
from te_select.base.kinds import KINDS, load
from te_select.cli.env import environment
from te_select.tuning.space import Space
from te_select.verify.verify import verify_kernel, with_numpy
from tests.support import ROOT, python, shapes, text_of
from tests.support.cli import run
from tests.support.toy_kind import TOY

PATTERNS = [
    Workload(*shapes("4,1 4,5 5")),
    Workload((), (), (), "complex128"),
    Workload(*shapes("3,1,2 3,7,1 1,7,2"), "uint8", "multidirectional"),
    Workload(*shapes("n,1 n,m 1"), "float64"),
    Workload(*shapes("0,3 3 ()"), "int16", "multidirectional"),
]


@fixture
def toy(monkeypatch):
    monkeypatch.setitem(KINDS, TOY.name, TOY)
    return TOY


@mark.usefixtures("toy")
@mark.parametrize("workload", PATTERNS, ids=str)
def test_made_up_kind_compiles_exports_loads_and_selects(workload, tmp_path):
    compiled = te_select.compile(workload, "toy", tuning_logs=False)
    assert (compiled.kind, compiled.target, dict(compiled.config)) == ("toy", "toy", {"unroll": 4})
    path = compiled.export(tmp_path / "kernel.so")
    loaded = te_select.load(path)
    assert isinstance(loaded, te_select.Kernel)
    assert type(loaded).__name__ == "ToyKernel"
    assert [r for r in verify_kernel(with_numpy(loaded)) if not r.passed] == []
    refused = loaded._try(*[np.zeros(3, "?")] * 4)
    assert refused is None
    assert "for (int64_t" in loaded.source("c") or not workload.out_shape or 0 in workload.out_shape


def shown(*args):
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


@mark.usefixtures("toy")
def test_verbs_know_a_made_up_kind(tmp_path):
    flags = ["--cond", "4,1", "--then", "4,5", "--else", ""]
    path = tmp_path / "toy_mask.so"
    shown("compile", *flags, "--target", "toy", "-o", path)
    assert "byte_orders" in shown("inspect", path)
    assert json.loads(shown("inspect", path, "--json"))["loads_here"] == "yes"
    assert "i1 < INT64_C(5)" in shown("inspect", path, "--source", "c")
    assert "passed" in shown("verify", path)
    assert environment()["toys"] == {"loops": "there"}


@mark.usefixtures("toy")
def test_made_up_kind_is_resolved_listed_and_searched():
    assert resolve({"kind": "c"}).kind == "toy"
    with raises(te_select.TargetError, match=r"expected native.*cuda.*toy.*did you mean toy"):
        resolve("tox")
    configs = Space(PATTERNS[0], resolve("toy")).configs
    assert sorted(config.unroll for config in configs) == [1, 4]


@mark.usefixtures("toy")
def test_library_that_needs_what_this_machine_lacks_is_refused(tmp_path, monkeypatch):
    path = te_select.export(PATTERNS[:1], tmp_path / "other.so", "toy")
    other = {"little": "big", "big": "little"}[sys.byteorder]
    monkeypatch.setattr("sys.byteorder", other)
    with raises(te_select.ArtifactError, match="this CPU lacks"):
        te_select.load(path)


FOREIGN = {  # the same words, as other libraries' names of devices and packages
    ("te_select/bench/peers/jit.py", "cpu"): "a device of JAX",
    ("te_select/bench/peers/metaschedule.py", "cuda"): "a package of tvm",
    ("te_select/selecting/torch_kernels.py", "cpu"): "a device of torch",
    ("te_select/runtime/call/jax_memory.py", "cpu"): "a platform of JAX",
    ("te_select/runtime/call/device.py", "cpu"): "a device of torch",
}

OF_ONE_KIND = {  # what there is for one kind only
    ("te_select/backends/build_key.py", "import of cpu"): "the cache of where() is for this CPU",
    ("te_select/dlight/rule.py", "import of cpu"): "CUDA's spans are no TIR",
    ("te_select/dlight/spans.py", "import of cpu"): "as above",
    ("te_select/selecting/kernels/library.py", "import of cpu"): "where() has kernels for CPUs",
    ("te_select/tuning/fleet/worker.py", "import of cpu"): "a fleet has servers for CPUs",
}


def dotted_paths():
    """What the records name."""
    for kind in KINDS.values():
        values = vars(kind).values()
        yield from (v for v in values if isinstance(v, str) and v.startswith("te_select."))


def neutral_modules():
    """The modules that belong to no kind, neither by a folder nor by a record."""
    named = {path.partition(":")[0] for path in dotted_paths()}
    for path in (*(ROOT / "te_select").rglob("*.py"), *(ROOT / "schedules").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts if parts[0] == "te_select" else ("te_select", *parts))
        if (
            module != "te_select.base.kinds"
            and module not in named
            and KINDS.keys().isdisjoint(parts)
        ):
            yield path


def names_of_kinds(tree):
    """Words of a module that name a kind, and imports of what belongs to one."""
    words = {word for kind in KINDS.values() for word in (kind.name, kind.tvm_kind)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in words:
            yield str(node.value)
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported = {*node.module.split("."), *(alias.name for alias in node.names)}
            if node.module.startswith("te_select"):
                yield from (f"import of {word}" for word in imported & set(KINDS))


def test_no_other_module_names_a_kind():
    found = set()
    for path in neutral_modules():
        place = path.relative_to(ROOT).as_posix()
        found |= {(place, name) for name in names_of_kinds(ast.parse(path.read_text()))}
    assert found == {*FOREIGN, *OF_ONE_KIND}


def test_table_of_kinds_imports_nothing_of_ours_and_no_tvm():
    code = (
        "import sys; import te_select.base.kinds; "
        "assert not [m for m in sys.modules if m.split('.')[0] in ('tvm', 'tvm_ffi', 'numpy')]"
    )
    python(code)


@mark.parametrize("path", sorted(dotted_paths()))
def test_dotted_path_of_a_record_leads_somewhere(path):
    assert load(path) is not None


def test_names_resolved_on_use_are_listed():
    tomllib = importorskip("tomllib")  # of Python 3.11
    listed = tomllib.loads(text_of("pyproject.toml"))["tool"]["te-select"]
    named = {path.partition(":")[0] for path in dotted_paths()}
    assert set(listed["resolved-on-use"]["te_select.base.kinds"]) == named
