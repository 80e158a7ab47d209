"""``te-select onnxruntime``, and the file that `te_select.onnxruntime.register` registers."""

import ctypes

from pytest import fixture, raises

from te_select import ToolchainError
from te_select.base import cache
from te_select.operator import family
from te_select.selecting.kernels import building, library
from tests.support.cli import run_json

PARTS = {"w2": family.parts()["w2"]}


@fixture(scope="module")
def image():
    return building.build_family(PARTS, "native").image


@fixture(autouse=True)
def a_small_family(monkeypatch, tmp_path):
    monkeypatch.setattr("te_select.operator.family.parts", lambda: PARTS)
    monkeypatch.setattr("te_select.operator.family.part_names", lambda: [*family.parts()])
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "cache"))


def test_build_writes_a_library_with_an_execution_provider(tmp_path):
    path = tmp_path / "libte_select_ort.so"
    document = run_json("onnxruntime", "build", "-o", path)
    assert (document["path"], document["kernels"]) == (str(path), len(PARTS["w2"]))
    opened = ctypes.CDLL(str(path))
    assert opened.CreateEpFactories and opened.ReleaseEpFactory
    assert opened.te_select_ort_calls() == 0


def test_file_of_a_session_is_built_once_and_again_if_damaged(image, tmp_path, monkeypatch):
    built = []

    def build(names):
        built.append(names)
        return image

    monkeypatch.setattr("te_select.selecting.kernels.library._build_here", build)
    path = tmp_path / "cache" / library.entry(library.WHOLE)
    assert library.whole_file() == library.whole_file() == path
    assert (built, path.read_bytes()) == ([["w2"]], image)
    path.write_bytes(image[:-1])
    assert library.whole_file() == path
    assert (len(built), path.read_bytes()) == (2, image)


def test_file_of_a_session_has_all_parts(image, monkeypatch):
    """Another of that name may have fewer."""
    built = []
    cache.write(library.entry(library.WHOLE), image)
    monkeypatch.setattr("te_select.operator.family.parts", lambda: {**PARTS, "w9": {}})
    monkeypatch.setattr("te_select.operator.family.held", lambda *_: ["w2"])
    monkeypatch.setattr(library, "_build_here", lambda names: built.append(names) or b"new")
    assert library.whole_file().read_bytes() == b"new"
    assert built == [["w2", "w9"]]


def test_file_that_cannot_be_built_names_what_is_missing(monkeypatch):
    def missing(_names):
        raise ModuleNotFoundError("no tvm", name="tvm")

    monkeypatch.setattr("te_select.selecting.kernels.library._build_here", missing)
    with raises(ToolchainError, match="to build kernels needs tvm"):
        library.whole_file()
