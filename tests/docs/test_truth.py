"""What the pages say holds: links, places, names, verbs, levels, tables and figures."""

import re
from pathlib import Path
from re import findall, sub

from pytest import mark
from typer.main import get_command

import te_select
from te_select import BroadcastError, errors
from te_select.base import cache, levels
from te_select.cli.verbs import app
from te_select.operator.broadcast import RULES, broadcast, format_shape
from te_select.runtime.call.cpu.profile import DECISIONS
from tests.support import ROOT, text_of
from tests.support.documents import PAGES, blocks

LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
FIGURE = re.compile(r"(?<![\w.^])(?<!\D-)(?:\d+\.\d+|\d{3,})(?=x\b|(?!\w|\.\d))")
MEASURED = ("docs/measurements.md", "docs/targets.md", "docs/tuning.md", "docs/where.md")


@mark.parametrize("page", PAGES)
def test_links_lead_to_files_of_the_repository(page):
    text = text_of(page)
    missing = [link for link in LINK.findall(text) if not ((ROOT / page).parent / link).exists()]
    assert not missing


@mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_page_has_a_place_in_the_navigation(page):
    assert f": {Path(page).name}\n" in text_of("mkdocs.yml")


@mark.parametrize("name", te_select.__all__)
def test_public_name_is_in_the_reference(name):
    text = text_of("docs/reference.md")
    shown = "errors" if hasattr(errors, name) else name
    assert f"::: te_select.{shown}\n" in text or f"`te_select.{shown}" in text


def in_first_column(table):
    """The names of code in the first cell of each row."""
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return findall(r"`(\w+)`", "".join(cells))


def test_every_verb_is_in_the_table_of_commands():
    text = text_of("docs/commands.md").partition("\n## ")[0]
    assert set(get_command(app).commands) == set(in_first_column(text))


def test_no_page_installs_us_by_a_name_that_an_index_may_have():
    """Another's package of that name would be taken, if its version is higher."""
    scripts = (ROOT / "examples").rglob("*.py")
    for path in (*map(ROOT.joinpath, PAGES), ROOT / "Makefile", *scripts):
        installed = findall(r"pip install ([^\n`&]*)", path.read_text())
        words = [word.strip("'\"") for line in installed for word in line.split()]
        assert not {"te-select", "te-select-runtime", "te-select-runtime[cli]"} & {*words}, path


@mark.parametrize(
    "step",
    [
        levels.ABOVE_BASELINE,
        "make -C /src wheel DIST=/wheels",
        "pip install /wheels/te_select_runtime-*-cp312-*.whl",
    ],
)
def test_dockerfile_takes_these_steps(step):
    assert step in next(b for b in blocks("docs/shipping.md") if b.language == "dockerfile").text


def test_lists_of_all_levels_are_the_rows():
    for name in (*PAGES, "te_select/cli/where.py"):
        listed = findall(r"x86-64-v2,x86-64-v3,x86[\w,-]*-v\d", text_of(name))
        assert {*listed} <= {levels.ABOVE_BASELINE}, name
    assert "`, `".join(levels.NAMES) in text_of("docs/targets.md")


def test_oldest_python_is_the_same_wherever_it_is_named():
    project = text_of("pyproject.toml")
    (oldest,) = findall(r'^requires-python = ">=(3\.\d+)"', project, re.MULTILINE)
    assert f'python_version = "{oldest}"' in project
    assert f'target-version = "{oldest.replace("3.", "py3")}"' in project
    release = ROOT / "release/runtime_wheel.py"
    assert oldest.replace("3.", "OLDEST = ") in release.read_text()
    others = ("Makefile", "setup.py", "tests/test_installing.py")
    for path in (*map(ROOT.joinpath, (*PAGES, *others)), release):
        told = findall(r"Python (?:from )?(3\.\d+) o(?:r newer|n\b)", path.read_text())
        assert {*told} <= {oldest}, path


def test_each_key_of_the_profile_is_in_one_row():
    text = text_of("docs/machine.md").partition("| key |")[2].partition("\n\n")[0]
    assert sorted(in_first_column(text)) == sorted(DECISIONS)


def test_size_of_the_cache_is_the_default():
    assert f"in MiB ({cache.DEFAULT_MIB})" in text_of("docs/where.md")


def rows_side_by_side():
    text = text_of("docs/broadcast.md").partition("## Side by side")[2]
    lines = [line for line in text.splitlines() if line.startswith("| [")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@mark.parametrize("row", rows_side_by_side(), ids=lambda row: row[0])
def test_row_of_the_rules_is_what_they_give(row):
    shapes = [
        tuple(int(dim) for dim in shape.strip("[] ").split(",") if dim)
        for shape in row[0].split("/")
    ]
    for rule, cell in zip(RULES, row[1:], strict=True):
        try:
            assert cell == format_shape(broadcast(*shapes, rule).out_shape)
        except BroadcastError:
            assert cell == "-"


@mark.parametrize("page", ["docs/schedules.md", "docs/shipping.md", "docs/quickstart.md"])
def test_figure_of_a_page_stands_among_the_measurements(page):
    measured = "".join(text_of(name) for name in MEASURED)
    text = sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
    text = sub(r"`[^`]*`|Python 3\.\d+", "", text)
    assert not [figure for figure in FIGURE.findall(text) if figure not in FIGURE.findall(measured)]
