"""What release/finish.py does to a wheel: it gets a bill of materials, and auditwheel's tag."""

import json
import platform
import zipfile

from pytest import fixture, importorskip, mark
from wheel.wheelfile import WheelFile

import te_select
from tests.support import ROOT, flat, loaded

MACHINE = platform.machine()
INFO = "te_select_runtime-1.dist-info"
TAGS = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp312-cp312-linux_{MACHINE}\n"
METADATA = """Metadata-Version: 2.4
Name: te-select-runtime
Version: 1
License-Expression: Apache-2.0
Requires-Dist: apache-tvm-ffi<0.2,>=0.1.9
Requires-Dist: numpy==2.3
Requires-Dist: rich; extra == "cli"
"""
KERNELS, CALLS = "te_select/prebuilt/libte_select_where.so", "te_select/_extension.so"
FITS = f'is consistent with the following\nplatform tag: "manylinux_2_34_{MACHINE}".\n'


@fixture(scope="module")
def kernels(tmp_path_factory):
    return te_select.export([flat(4)], tmp_path_factory.mktemp("kernels") / "where.so")


@fixture
def finish(kernels, tmp_path, monkeypatch):
    """Finish a wheel, of which auditwheel says something; returns what it is then."""
    module = loaded(ROOT / "release/finish.py")
    own = module.python
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")

    def finished(says):
        folder = tmp_path / f"dist-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        wheel = folder / f"te_select_runtime-1-cp312-cp312-linux_{MACHINE}.whl"
        with WheelFile(wheel, "w") as archive:
            for name, text in (("WHEEL", TAGS), ("METADATA", METADATA)):
                archive.writestr(f"{INFO}/{name}", text)
            archive.write(kernels, KERNELS)
            archive.writestr(CALLS, "code")

        def python(name, *words, **how):
            return says if name == "auditwheel" else own(name, *words, **how)

        monkeypatch.setattr(module, "python", python)
        monkeypatch.setattr("sys.argv", ["", str(wheel)])
        module.main()
        (path,) = folder.iterdir()
        return path

    return finished


def bill_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"{INFO}/sboms/te_select_runtime-1.cdx.json").decode()


@mark.parametrize("says, tag", [(FITS, "manylinux_2_34"), ("too new:\nGLIBC", "linux")])
def test_wheel_gets_the_tag_that_auditwheel_finds(finish, capfd, says, tag):
    wheel = finish(says)
    assert wheel.name == f"te_select_runtime-1-cp312-cp312-{tag}_{MACHINE}.whl"
    refused = f"{wheel} gets no manylinux tag: too new: GLIBC\n"
    assert capfd.readouterr().out == (refused if tag == "linux" else "")


def test_bill_lists_machine_code_and_needed_packages(finish, kernels):
    document = json.loads(bill_of(finish(FITS)))
    subject = document["metadata"]["component"]
    assert (subject["purl"], document["metadata"]["timestamp"]) == (
        "pkg:pypi/te-select-runtime@1",
        "2023-11-14T22:13:20+00:00",
    )
    parts = {part["name"]: part for part in document["components"]}
    assert list(parts) == [CALLS, KERNELS, "apache-tvm-ffi", "numpy"]
    assert all(part["hashes"] for name, part in parts.items() if name.endswith(".so"))
    assert {part["name"] for part in parts[KERNELS]["components"]} >= {"te-select", "LLVM"}
    assert parts["numpy"]["purl"] == "pkg:pypi/numpy@2.3"
    assert "version" not in parts["apache-tvm-ffi"]
    (edge,) = document["dependencies"]
    assert edge["dependsOn"] == [part["bom-ref"] for part in parts.values()]


def test_finished_wheels_are_equal_and_their_bill_is_valid(finish):
    first, second = finish(FITS), finish(FITS)
    assert first.read_bytes() == second.read_bytes()
    validation = importorskip("cyclonedx.validation.json")
    from cyclonedx.schema import SchemaVersion

    strict = validation.JsonStrictValidator(SchemaVersion.V1_6)
    assert strict.validate_str(bill_of(first)) is None
