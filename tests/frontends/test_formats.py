"""The table of formats: a made-up one works everywhere by its record and its reader alone."""

import re
import sys
from importlib.metadata import requires
from re import findall
from sys import modules

from pytest import fixture, mark, raises

from te_select import ModelError, ToolchainError, read_model
from te_select.frontends.formats import FORMATS, titles
from tests.support import ROOT, text_of
from tests.support.cli import refused, run, run_json
from tests.support.toy_reader import TOY


@fixture
def toy(tmp_path):
    FORMATS.append(TOY)
    path = tmp_path / "model.toy"
    path.write_text("toy 3 5\n")
    yield path
    FORMATS.remove(TOY)


def test_made_up_format_is_read_by_its_record_alone(toy):
    assert [n.workload.out_shape for n in read_model(toy)] == [(3,), (5,)]
    other = toy.rename(toy.with_suffix(".bin"))
    assert len(read_model(other)) == 2


def test_limits_and_errors_of_a_made_up_format_are_kept(toy):
    toy.write_text("toy three\n")
    with raises(ModelError, match=r"model\.toy: the file is no toy"):
        read_model(toy)
    toy.write_text("toy 1\n" * 20)
    with raises(ModelError, match="larger than 0 MiB"):
        read_model(toy)


def test_verbs_know_a_made_up_format(toy):
    said = run_json("inspect", "--model", toy)
    assert [node["place"] for node in said["nodes"]] == ["line#0", "line#1"]
    assert f"--model {toy}" in refused("inspect", toy)


@mark.usefixtures("toy")
def test_titles_name_every_format():
    assert [each for each in FORMATS if each.title[1:] not in titles()] == []
    assert titles().endswith(f" or {TOY.title}.")


@mark.parametrize("verb", ["compile", "inspect", "tune", "bench"])
def test_help_of_a_verb_that_takes_models_names_every_format(verb):
    shown = run(verb, "--help").output.replace("│", " ")
    assert titles() in " ".join(shown.split())


@mark.parametrize("name, package", [("model.onnx", "onnx"), ("model.xml", "defusedxml")])
def test_missing_package_is_named_with_what_brings_it(tmp_path, monkeypatch, name, package):
    (tmp_path / name).touch()
    monkeypatch.setitem(modules, package, None)
    for module in [each for each in modules if each.startswith("te_select.frontends.o")]:
        monkeypatch.delitem(modules, module)
    with raises(ToolchainError, match=f"pip install {package}"):
        read_model(tmp_path / name)


def test_page_of_models_has_a_row_for_every_format():
    rows = findall(r"^\| [\w ]+ \| `(\.\w+)` \|", text_of("docs/models.md"), re.M)
    assert rows == [each.suffix for each in FORMATS]


def test_packages_of_readers_are_in_the_extras():
    """What readers import, and what their messages name, is in the extras."""
    for row in FORMATS:
        path = ROOT / f"{row.reader.partition(':')[0].replace('.', '/')}.py"
        files = [path, *path.parent.glob(f"{path.stem}_*.py"), *path.parent.glob("*_graph/*.py")]
        text = "".join(each.read_text() for each in files)
        imported = set(findall(r"^\s*(?:from|import) (\w+)", text, re.M))
        for extra in ("models", "test"):
            brought = [each for each in requires("te-select") if each.endswith(f'"{extra}"')]
            brought = {re.match(r"\w+", each)[0] for each in brought}
            assert imported - {*sys.stdlib_module_names, "te_select", "google"} <= brought


def test_files_of_the_walk_are_there():
    page = text_of("CONTRIBUTING.md")
    walk = page.partition("### Add a model format\n")[2].partition("\n### ")[0]
    places = {row.reader.rpartition(".")[0].replace(".", "/") for row in FORMATS}
    named = findall(r"`([\w/]+\.\w+)`", walk)
    assert {name.rpartition("/")[0] for name in named if "/NAME." in name} == places
    named = {name for name in named if "/" in name and "/NAME." not in name}
    assert [name for name in named if not (ROOT / name).is_file()] == []
    assert {"te_select/frontends/formats.py", "te_select/operator/systems.py"} <= named
