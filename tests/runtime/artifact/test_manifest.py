"""Manifests: what is read back, and what is refused."""

from json import dumps

from pytest import mark, raises

from te_select import ArtifactError, Workload
from te_select.runtime.artifact.fields import Choice
from te_select.runtime.artifact.manifest import KernelRecord, Manifest, parse
from tests.support import alike

W = Workload((8, "n"), (8, "n"), (), "bfloat16")
TUNED = Choice({"lanes": 8, "rows": True}, "tuned:znver5/w2_8cte", "it was tuned")
MANIFEST = Manifest(
    (KernelRecord(W, TUNED), KernelRecord(alike(), Choice({}, "default", ""))),
    {"name": "znver5", "kind": "cpu", "architecture": "x86_64", "cpu_features": ["avx2", "fma"]},
    {"te_select": "1", "llvm": "20"},
)
DIGEST = "5" * 64
KERNEL = MANIFEST.to_json(DIGEST)["kernels"][0]
PART = ("name", "version", "part", "license")


def changed(**fields):
    return dumps(MANIFEST.to_json(DIGEST) | fields).encode()


def test_what_was_written_is_read_back():
    assert parse(MANIFEST.to_text(DIGEST), "x.json") == (MANIFEST, DIGEST)
    assert MANIFEST.kind.name == "cpu"


@mark.parametrize("form", [1, 3, "2", None, True, 2.0])
def test_manifest_of_another_format_is_refused(form):
    with raises(ArtifactError, match=rf"has format {form!r}; this te_select reads format 2"):
        parse(changed(format=form), "x.json")


@mark.parametrize(
    "fields, text",
    [
        ({"target": {**MANIFEST.target, "kind": "rocm"}}, "kind is 'rocm', expected cpu or cuda"),
        ({"target": {**MANIFEST.target, "kind": []}}, r"kind is \[\], expected a str"),
        ({"sha256": 3}, "sha256 is 3, expected a str"),
        ({"target": {"kind": "cpu", "cpu_features": []}}, "name is None, expected a str"),
        ({"versions": []}, r"versions is \[\], expected a dict"),
        ({"kernels": [3]}, "kernels is 3, expected a dict"),
        ({"components": [dict.fromkeys(PART, "x") | {"name": "a\nb"}]}, "a string of one line"),
        *(
            ({"kernels": [{**KERNEL, "levels": {"v2": item}}]}, "expected a")
            for item in ({"config": 3}, {"origin": None}, {"why": 1})
        ),
        ({"target": {**MANIFEST.target, "levels": {"v2": []}}}, "expected two or more"),
        (
            {
                "kernels": [{**KERNEL, "levels": {"v9": {}}}],
                "target": {**MANIFEST.target, "levels": {"v2": [], "v3": []}},
            },
            r"the levels \['v9'\], expected \['v2'\]",
        ),
        ({"nodes": [3]}, "nodes is 3, expected a dict"),
        ({"nodes": [{"place": "graph#1"}]}, "name is None, expected a str"),
    ],
)
def test_what_is_no_manifest_is_said_in_one_line(fields, text):
    with raises(ArtifactError, match=rf"^x\.json is not a manifest: .*{text}") as caught:
        parse(changed(**fields), "x.json")
    assert "\n" not in str(caught.value)


@mark.parametrize("field", ["workload", "config", "origin", "why"])
def test_kernel_that_lacks_a_field_is_refused(field):
    data = MANIFEST.to_json(DIGEST)
    del data["kernels"][0][field]
    with raises(ArtifactError, match=f"{field} is None, expected"):
        parse(dumps(data).encode(), "x.json")


def test_other_names_of_c_functions_are_read_back_or_refused():
    named = Manifest((KernelRecord(W, TUNED, names=("mask", "m2")),), MANIFEST.target, {})
    assert parse(named.to_text(DIGEST), "x.json") == (named, DIGEST)
    assert "names" not in KERNEL
    for odd in ("2x", "a b", "select_it"):
        with raises(ArtifactError, match=f"names holds '{odd}', expected identifiers"):
            parse(changed(kernels=[{**KERNEL, "names": ["mask", odd]}]), "x.json")
    for odd in ("x\n#error", "", "\u00e4", 3):
        with raises(ArtifactError, match="is not a manifest: names "):
            parse(changed(kernels=[{**KERNEL, "names": [odd]}]), "x.json")
