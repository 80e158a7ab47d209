"""What a manifest says of the software that a library is made of and by."""

import hashlib
import json

import pytest

import te_select
from te_select.backends import build_key
from te_select.compiler import build
from te_select.runtime.artifact import stored
from tests.support.cli import run, run_json
from tests.support.workloads import flat

W = flat(4)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return te_select.export([W, flat(3)], tmp_path_factory.mktemp("c") / "lib.so")


def test_manifest_lists_components_versions_and_licences(path):
    document = json.loads(path.with_suffix(".json").read_text())
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
    assert told["te-select:target"] == stored.read(path).manifest.target["name"]
    listed = json.loads(path.with_suffix(".json").read_text())["components"]
    found = [(each["name"], each["version"]) for each in document["components"]]
    assert found == [(each["name"], each["version"]) for each in listed]
    scopes = {each["name"]: each["scope"] for each in document["components"]}
    assert (scopes["te-select"], scopes["LLVM"]) == ("required", "excluded")


def test_bill_of_materials_is_of_a_whole_library(path, tmp_path):
    changed = tmp_path / "lib.so"
    changed.write_bytes(path.read_bytes() + b"x")
    assert run("inspect", changed, "--sbom").exit_code == 1
    refused = run("inspect", "--cond", "4", "--then", "4", "--else", "4", "--sbom")
    assert "--sbom has no meaning beside workload flags" in refused.stderr


def test_list_is_kept_where_a_kernel_is_exported_alone(path, tmp_path):
    alone = te_select.load(path)[W.name].export(tmp_path / "mask.so")
    assert stored.read(alone).manifest.components == stored.read(path).manifest.components


@pytest.mark.parametrize(
    ("command", "printed", "expected"),
    [
        (("cc",), {"-dumpfullversion": "12.2.0", "--version": "cc (Debian 12.2.0-14) 12.2.0"},
         ("GCC", "12.2.0")),
        (("clang",), {"--version": "Debian clang version 19.1.7"}, ("Clang", "19.1.7")),
        (("/opt/tcc",), {"--version": "tcc version 0.9.28"}, ("tcc", "0.9.28")),
        (("/opt/silent",), {}, ("silent", "unknown")),
    ],
)  # fmt: skip
def test_c_compiler_is_known_by_what_it_prints(monkeypatch, command, printed, expected):
    monkeypatch.setattr(build, "first_line", lambda *words: printed.get(words[-1]))
    found = build._c_compiler.__wrapped__(command)
    assert (found.name, found.version) == expected
    assert bool(found.license) == (expected[0] in {"GCC", "Clang"})
