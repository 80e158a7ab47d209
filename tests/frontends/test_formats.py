"""The table of formats: a made-up one works everywhere by its record and its reader alone."""

import json
import re
from pathlib import Path

import pytest

import te_select
from te_select import ModelError
from te_select.frontends import formats
from tests.support.cli import run
from tests.support.toy_reader import TOY

ROOT = Path(__file__).parents[2]


@pytest.fixture
def toy(tmp_path):
    formats.FORMATS.append(TOY)
    path = tmp_path / "model.toy"
    path.write_text("toy 3 5\n")
    yield path
    formats.FORMATS.remove(TOY)


def test_made_up_format_is_read_by_its_record_alone(toy):
    assert [n.workload.out_shape for n in te_select.read_model(toy)] == [(3,), (5,)]
    assert len(te_select.read_model(toy, expand=True)) == 4
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
    said = json.loads(run("inspect", "--model", toy, "--json").stdout)
    assert [node["place"] for node in said["nodes"]] == ["line#0", "line#1"]
    refused = run("inspect", toy)
    assert refused.exit_code == 2
    assert f"--model {toy}" in refused.output


def test_help_names_every_format(toy):
    assert formats.titles().endswith("a oneDNN Graph dump (.json) or a toy (.toy).")
    assert formats.titles().startswith("An ONNX file, ")


def test_contributing_lists_the_files_of_a_format():
    """The reader, its record, its operator and rule, its package, and a page."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    walk = page.partition("### Add a model format\n")[2].partition("\n### ")[0]
    changed = re.findall(r"\*\*`([^`]+)`\*\*", walk)
    assert changed == [
        "te_select/frontends/NAME.py",
        "te_select/frontends/formats.py",
        "te_select/operator/systems.py",
        "te_select/operator/broadcast.py",
        "pyproject.toml",
        "docs/models.md",
    ]
    for row in formats.FORMATS:
        module = row.reader.partition(":")[0]
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
