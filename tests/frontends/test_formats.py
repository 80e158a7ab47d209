"""The table of formats: a made-up one works everywhere by its record and its reader alone."""

import re
import sys
from importlib.metadata import requires

import pytest

import te_select
from te_select import ModelError, ToolchainError
from te_select.frontends import formats
from tests.support import ROOT
from tests.support.cli import refused, run, run_json
from tests.support.toy_reader import TOY


@pytest.fixture
def toy(tmp_path):
    formats.FORMATS.append(TOY)
    path = tmp_path / "model.toy"
    path.write_text("toy 3 5\n")
    yield path
    formats.FORMATS.remove(TOY)


def test_made_up_format_is_read_by_its_record_alone(toy):
    assert [n.workload.out_shape for n in te_select.read_model(toy)] == [(3,), (5,)]
    other = toy.rename(toy.with_suffix(".bin"))
    assert len(te_select.read_model(other)) == 2


def test_limits_and_errors_of_a_made_up_format_are_kept(toy):
    toy.write_text("toy three\n")
    with pytest.raises(ModelError, match=r"model\.toy: the file is no toy"):
        te_select.read_model(toy)
    toy.write_text("toy 1\n" * 20)
    with pytest.raises(ModelError, match="larger than 0 MiB"):
        te_select.read_model(toy)


def test_verbs_know_a_made_up_format(toy):
    said = run_json("inspect", "--model", toy)
    assert [node["place"] for node in said["nodes"]] == ["line#0", "line#1"]
    assert f"--model {toy}" in refused("inspect", toy)


@pytest.mark.usefixtures("toy")
def test_titles_name_every_format():
    assert [each for each in formats.FORMATS if each.title[1:] not in formats.titles()] == []
    assert formats.titles().endswith(f" or {TOY.title}.")


@pytest.mark.parametrize("verb", ["compile", "inspect", "tune", "bench"])
def test_help_of_a_verb_that_takes_models_names_every_format(verb):
    shown = run(verb, "--help").output.replace("│", " ")
    assert formats.titles() in " ".join(shown.split())


@pytest.mark.parametrize(("name", "package"), [("model.onnx", "onnx"), ("model.xml", "defusedxml")])
def test_missing_package_is_named_with_what_brings_it(tmp_path, monkeypatch, name, package):
    (tmp_path / name).touch()
    monkeypatch.setitem(sys.modules, package, None)
    for module in [each for each in sys.modules if each.startswith("te_select.frontends.o")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ToolchainError, match=f"pip install {package}"):
        te_select.read_model(tmp_path / name)


def test_page_of_models_has_a_row_for_every_format():
    rows = re.findall(r"^\| [\w ]+ \| `(\.\w+)` \|", (ROOT / "docs/models.md").read_text(), re.M)
    assert rows == [each.suffix for each in formats.FORMATS]


def test_packages_of_readers_are_in_the_extras():
    """What readers import, and what their messages name, is in the extras."""
    for row in formats.FORMATS:
        path = ROOT / f"{row.reader.partition(':')[0].replace('.', '/')}.py"
        files = [path, *path.parent.glob(f"{path.stem}_*.py"), *path.parent.glob("*_graph/*.py")]
        text = "".join(each.read_text() for each in files)
        imported = set(re.findall(r"^\s*(?:from|import) (\w+)", text, re.M))
        for extra in ("models", "test"):
            brought = [each for each in requires("te-select") if each.endswith(f'"{extra}"')]
            brought = {re.match(r"\w+", each)[0] for each in brought}
            assert imported - {*sys.stdlib_module_names, "te_select", "google"} <= brought


def test_files_of_the_walk_are_there():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    walk = page.partition("### Add a model format\n")[2].partition("\n### ")[0]
    places = {row.reader.rpartition(".")[0].replace(".", "/") for row in formats.FORMATS}
    named = re.findall(r"`([\w/]+\.\w+)`", walk)
    assert {name.rpartition("/")[0] for name in named if "/NAME." in name} == places
    named = {name for name in named if "/" in name and "/NAME." not in name}
    assert [name for name in named if not (ROOT / name).is_file()] == []
    assert {"te_select/frontends/formats.py", "te_select/operator/systems.py"} <= named
