from re import escape

import numpy as np
from pytest import mark, raises

import te_select
from te_select import ArgumentError, ArtifactError, Workload, load
from te_select.backends import limits
from te_select.backends.cpu import objects
from te_select.backends.targets import resolve
from te_select.compiler import scheduling
from te_select.compiler.sources import source
from tests.support import flat, flat_and_scalar
from tests.support.libraries import beside, edit_fields
from tests.support.machines import LEVEL

W = Workload((64, 1), (64, 5), (5,))


@mark.parametrize("ending", [".json", ".h", ".a"])
def test_file_of_no_export_is_refused_before_compiling(tmp_path, monkeypatch, ending):
    def compiled(*_arguments, **_options):
        raise AssertionError("it was compiled")

    monkeypatch.setattr("te_select.compiler.export.schedule", compiled)
    (tmp_path / f"mask{ending}").write_text("mine")
    with raises(ArtifactError, match=rf"mask\{ending} is no .* is not replaced"):
        te_select.export([W], tmp_path / "mask.so", static=True)
    assert (tmp_path / f"mask{ending}").read_text() == "mine"


def test_library_holds_each_workload_once(tmp_path):
    other = flat(3, "int8")
    path = te_select.export([W, other, W], tmp_path / "lib.so")
    library = load(path)
    assert sorted(library) == sorted([W.name, other.name])
    manifest = beside(path)
    assert [kernel["symbol"] for kernel in manifest["kernels"]] == [W.name, other.name]
    assert manifest["target"]["cpu_features"]
    assert {"te_select", "tvm", "tvm_ffi", "llvm"} <= set(manifest["versions"])


@mark.parametrize("name", ["a,b", "a b", "a'b", "-o", "ä=$(b)"])
def test_library_may_lie_in_a_folder_of_any_name(name, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    path = te_select.export([flat_and_scalar(3)], folder / "kernel.so")
    assert load(path)(np.array([True, False, True]), np.ones(3, "f4"), 0).sum() == 2


def test_export_of_nothing_is_refused(tmp_path):
    with raises(ArgumentError, match="at least one"):
        te_select.export([], tmp_path / "lib.so")


def test_unknown_source_is_refused_and_the_known_are_listed():
    with raises(te_select.SelectError, match="te, scheduled, tir, llvm, asm"):
        te_select.compile(W).source("wasm")


@mark.parametrize("wrong", [None, "x", 3, [W]])
def test_compile_of_something_else_is_refused(wrong):
    with raises(
        ArgumentError,
        match=r"not a te_select\.Workload; expected te_select\.Workload\(cond_shape, ",
    ):
        te_select.compile(wrong)


@mark.parametrize("wrong", [W, None, 3, [W, 1]])
def test_export_of_something_else_is_refused(wrong, tmp_path):
    with raises(ArgumentError):
        te_select.export(wrong, tmp_path / "lib.so")


@mark.parametrize(
    "change",
    [
        {"vector_bytes": None},
        {"unroll": 2**40},
        {"bytes_per_thread": True},
        {"rows": "yes"},
        {"unheard": 1},
    ],
)
def test_damaged_config_of_a_manifest_is_explained(change, tmp_path):
    path = te_select.compile(W).export(tmp_path / "mask.so")
    edit_fields(path, lambda found: found["kernels"][0]["config"].update(change))
    kernel = load(path)
    with raises(ArtifactError, match="damaged"):
        kernel.source("scheduled")


@mark.parametrize(
    "shapes", [[("n", 0), ("n", 0), ()], [("a", 0), (0,), ("a", 0)], [("n", 1), (1, 0), ("n", 0)]]
)
def test_named_and_zero_extents_together_give_an_empty_output(shapes):
    kernel = te_select.compile(Workload(*shapes, auto_broadcast="multidirectional"))
    cond, then, else_ = (np.zeros([3 if isinstance(d, str) else d for d in s]) for s in shapes)
    out = kernel(cond.astype(bool), then.astype(np.float32), else_.astype(np.float32))
    assert out.shape == (3, 0)


@mark.slow
def test_many_loops_of_named_sizes_compile_and_are_right():
    names = [f"d{i}" for i in range(24)]
    cond = [name if i % 2 else 1 for i, name in enumerate(names)]
    then = [1 if i % 2 else name for i, name in enumerate(names)]
    kernel = te_select.compile(Workload(cond, then, (), auto_broadcast="multidirectional"))
    sizes = {name: 2 if i in (0, 5, 6, 11, 17, 20, 23) else 1 for i, name in enumerate(names)}
    bound = kernel.workload.bind(sizes)
    rng = np.random.default_rng(0)
    c = rng.random(bound.cond_shape) < 0.5
    t = rng.random(bound.then_shape).astype(np.float32)
    assert np.array_equal(kernel(c, t, np.float32(7)), np.where(c, t, np.float32(7)))


@mark.parametrize("target", ["native", "cuda:sm_80"])
def test_axes_too_large_to_be_one_loop_are_refused_with_advice(target, tmp_path):
    workload = Workload((2, 1 << 31), (2, 1 << 31), (), "uint8")
    with raises(ArgumentError, match=r"fewer than 2\^31.*reshaping"):
        te_select.export([workload], tmp_path / "k.so", target)
    flat = flat_and_scalar(1 << 32, "uint8")
    assert scheduling.schedule(flat, resolve(target)).workload == flat


@mark.slow
@mark.parametrize(
    "shapes",
    [
        ((255, 2, 1 << 30, 1), (255, 2, 1, "m"), (255, 2, 1 << 30, "m")),
        (((1 << 32) + 1, "n", "n", "m"), ((1 << 32) + 1, "n", 1, "m"), (1, "n", "m")),
    ],
)
def test_axes_that_lowering_cannot_fuse_are_refused_with_advice(shapes, tmp_path, monkeypatch):
    workload = Workload(*shapes, auto_broadcast="multidirectional")
    target = LEVEL
    assert source(workload, target, None, "scheduled")
    for level in ("tir", "llvm", "asm"):
        with raises(ArgumentError, match=r"fewer than 2\^31.*reshaping"):
            source(workload, target, None, level)
    both = [flat_and_scalar(3), workload]
    refusal = f"{workload} cannot be compiled"
    for many in (objects.MANY, 1):  # with 1, other processes compile
        monkeypatch.setattr("te_select.backends.cpu.objects.MANY", many)
        with raises(ArgumentError, match=escape(refusal)):
            te_select.export(both, tmp_path / "k.so", target)
        assert not list(tmp_path.iterdir())


def test_tir_is_shown_without_what_is_never_reached():
    rows = source(Workload((64, 1), (64, 512), (512,)), LEVEL, None, "tir")
    assert "T.bool(False)" not in rows and "back" not in rows
    pieces = source(Workload(*[(4099, 1021)] * 3), LEVEL, None, "tir")
    assert "if n < T.int64(" not in pieces  # none has fewer elements than a vector
    short = source(flat(5), LEVEL, None, "tir")
    assert "T.Div" not in short and short.count("if task == T.int64(0):") == 1


def test_failure_of_tvm_in_a_build_of_many_is_one_of_them():
    few = [flat_and_scalar(n) for n in (3, 4)]
    for workloads, which in ((few[:1], str(few[0])), (few, "one of 2 workloads")):
        with (
            raises(ArgumentError, match=escape(f"{which} cannot be compiled")),
            limits.tvm_errors_as_ours(*workloads),
        ):
            raise ValueError("Literal value 2147483648 exceeds range of int32")
    with raises(ValueError, match="another"), limits.tvm_errors_as_ours(*few):
        raise ValueError("another")


def test_two_workloads_of_one_name_are_refused_at_once(tmp_path):
    """A collision of the 40 bits of a digest, found by trying two million."""
    names = [letter * 60 for letter in "lmk"]
    long = [f"{'n' * 40}{number}" for number in (267532, 2237558)]
    first, second = (
        Workload((*names, dim), (), (), auto_broadcast="multidirectional") for dim in long
    )
    assert first != second
    assert first.name == second.name
    with raises(ArgumentError, match="have one name") as caught:
        te_select.export([first, second], tmp_path / "k.so", LEVEL)
    assert all(text in str(caught.value) for text in (str(first), str(second), first.name))
    assert not list(tmp_path.iterdir())
    assert te_select.export([first, first], tmp_path / "k.so", LEVEL)
