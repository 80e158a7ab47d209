"""What a manifest says of the software that a library is made of and by."""

import hashlib

import pytest

import te_select
from te_select.backends import build_key
from te_select.compiler import build
from te_select.runtime.artifact.stored import read
from tests.support import flat
from tests.support.cli import FLAGS, refused, run, run_json
from tests.support.libraries import beside

W = flat(4)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return te_select.export([W, flat(3)], tmp_path_factory.mktemp("c") / "lib.so")


def test_manifest_lists_components_versions_and_licences(path):
    document = beside(path)
    by_name = {each["name"]: each for each in document["components"]}
    assert by_name["te-select"] == {
        "name": "te-select",
        "version": te_select.__version__,
        "part": "code",
        "license": "Apache-2.0",
    }
    assert by_name["LLVM"]["license"] == "Apache-2.0 WITH LLVM-exception"
    assert {"Apache TVM", "Apache TVM FFI"} <= by_name.keys()
    assert by_name.keys() & {"GCC", "Clang"}
    assert all(each["version"][0].isdigit() for each in document["components"])


def test_bill_of_materials_has_the_same_components(path):
    document = run_json("inspect", path, "--sbom")
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    library = document["metadata"]["component"]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert library["hashes"] == [{"alg": "SHA-256", "content": digest}]
    told = {each["name"]: each["value"] for each in library["properties"]}
    assert told["te-select:te_select_sources"] == build_key.of_sources()
    assert told["te-select:target"] == read(path).manifest.target["name"]
    listed = beside(path)["components"]
    found = [(each["name"], each["version"]) for each in document["components"]]
    assert found == [(each["name"], each["version"]) for each in listed]
    on_pypi = {each["name"] for each in document["components"] if "pypi" in each["purl"]}
    assert on_pypi == {"te-select", "Apache TVM", "Apache TVM FFI"}
    scopes = {each["name"]: each["scope"] for each in document["components"]}
    assert (scopes["te-select"], scopes["LLVM"]) == ("required", "excluded")
    ours = next(each for each in document["components"] if each["name"] == "te-select")
    assert ours["purl"] == f"pkg:pypi/te-select@{te_select.__version__}"
    assert ours["hashes"] == [{"alg": "SHA-256", "content": build_key.of_sources()}]


def test_bill_of_materials_is_valid_and_the_same_at_every_time(path, monkeypatch):
    validation = pytest.importorskip("cyclonedx.validation.json")
    from cyclonedx.schema import SchemaVersion

    first, second = (run("inspect", path, "--sbom").stdout for _ in range(2))
    assert first == second
    assert validation.JsonStrictValidator(SchemaVersion.V1_6).validate_str(first) is None
    for moment, said in (
        ("86400", "1970-01-02T00:00:00+00:00"),
        ("0", "1970-01-01T00:00:00+00:00"),
    ):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", moment)
        assert run_json("inspect", path, "--sbom")["metadata"]["timestamp"] == said
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    said = refused("inspect", path, "--sbom")
    assert "SOURCE_DATE_EPOCH is 'today'; expected a whole number" in said


def test_bill_of_materials_is_of_a_whole_library(path, tmp_path):
    changed = tmp_path / "lib.so"
    changed.write_bytes(path.read_bytes() + b"x")
    assert run("inspect", changed, "--sbom").exit_code == 1
    said = refused("inspect", *FLAGS, "--sbom")
    assert "--sbom has no meaning beside workload flags" in said


def test_list_is_kept_where_a_kernel_is_exported_alone(path, tmp_path):
    alone = te_select.load(path)[W.name].export(tmp_path / "mask.so")
    assert read(alone).manifest.components == read(path).manifest.components


@pytest.mark.parametrize(
    "command, printed, expected",
    [
        (("cc",), {"-dumpfullversion": "12.2.0", "--version": "cc (crosstool-NG 1.25) 12.2.0"},
         ("GCC", "12.2.0", "GPL-3.0-or-later WITH GCC-exception-3.1")),
        (("cc",), {"-dumpfullversion": "4.2.1", "--version": "Debian clang version 19.1.7"},
         ("Clang", "19.1.7", "Apache-2.0 WITH LLVM-exception")),
        (("/opt/tcc",), {"--version": "tcc version 0.9.28"}, ("tcc", "0.9.28", "")),
        (("/opt/silent",), {}, ("silent", "unknown", "")),
    ],
)  # fmt: skip
def test_c_compiler_is_known_by_what_it_prints(monkeypatch, command, printed, expected):
    monkeypatch.setattr(build, "first_line", lambda *words: printed.get(words[-1]))
    found = build._c_compiler.__wrapped__(command)
    assert (found.name, found.version, found.license) == expected
