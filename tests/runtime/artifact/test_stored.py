"""Artifacts on the disk stay whole while others write, read, kill or edit."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from numpy._core import _multiarray_umath as umath

import te_select
from te_select import Workload
from te_select.errors import ArtifactError
from te_select.runtime.artifact import atomic, embedded, stored
from te_select.runtime.call import loading
from tests.support.libraries import edit_inside
from tests.support.runtime_standin import build

W = Workload((8,), (8,), (8,), "float32")
OTHER = Workload((8,), (8,), (8,), "int32")
ARGS = np.array([1, 0] * 4, bool), np.ones(8, "f4"), np.zeros(8, "f4")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two libraries that differ in their results and in their sizes."""
    folder = tmp_path_factory.mktemp("pair")
    many = [OTHER, *(Workload((n,), (n,), (n,), "int32") for n in range(9, 40))]
    return build([W], folder / "one.so"), build(many, folder / "two.so")


@pytest.fixture
def path(pair, tmp_path):
    return stored.write(stored.read(pair[0]), tmp_path / "mask.so")


def run(code, *args):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        stdin=subprocess.PIPE,  # which stays open, where a test's own may be at its end
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


EXPORTING = """
    import sys
    from te_select.runtime.artifact import stored
    library = stored.read(sys.argv[1])
    print("ready", flush=True)
    for _ in range(int(sys.argv[3])):
        stored.write(library, sys.argv[2])
"""


def test_readers_get_one_or_the_other_whole_while_two_write(pair, tmp_path):
    target = tmp_path / "mask.so"
    stored.write(stored.read(pair[0]), target)
    writers = [run(EXPORTING, source, target, 150) for source in pair]
    known = {stored.read(source).sha256 for source in pair}
    seen = set()
    while any(writer.poll() is None for writer in writers):
        found = stored.read(target)
        assert embedded.digest_of(found.image) == found.sha256 in known
        seen.add(found.sha256)
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0, errors
    assert seen == known
    assert isinstance(loading.load(target), te_select.Kernel | loading.Library)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mask.json", "mask.so"]


def test_killed_writer_leaves_the_old_or_the_new_library(pair, tmp_path):
    target = tmp_path / "mask.so"
    stored.write(stored.read(pair[0]), target)
    known = {stored.read(source).sha256 for source in pair}
    rng = random.Random(1)
    for turn in range(12):
        writer = run(EXPORTING, pair[turn % 2], target, 10_000)
        assert writer.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 0.02))
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        assert stored.read(target).sha256 in known
    loading.load(target)
    stored.write(stored.read(pair[0]), target)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mask.json", "mask.so"]


def test_files_reach_the_disk_before_they_are_renamed(path, monkeypatch):
    events = []
    fsync, replace = os.fsync, atomic.Path.replace

    def note_fsync(handle):
        events.append("fsync")
        fsync(handle)

    def note_replace(self, target):
        events.append(f"rename {target.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(atomic.Path, "replace", note_replace)
    stored.write(stored.read(path), path)
    assert events == ["fsync", "fsync", "rename mask.so", "rename mask.json", "fsync"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_follow_the_umask(pair, tmp_path, umask):
    before = os.umask(umask)
    try:
        path = stored.write(stored.read(pair[0]), tmp_path / "mask.so")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o777 & ~umask
    assert stat.S_IMODE(path.with_suffix(".json").stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("text", ["", "{}", '{"name": "my-package"}', "[1]", "\x00\xff"])
def test_file_that_is_no_manifest_is_not_replaced(pair, tmp_path, text):
    beside = tmp_path / "package.json"
    beside.write_text(text, encoding="latin-1")
    with pytest.raises(ArtifactError, match=r"package\.json is no manifest of te-select"):
        loading.load(pair[0]).export(tmp_path / "package.so")
    assert beside.read_text(encoding="latin-1") == text
    assert not (tmp_path / "package.so").exists()


@pytest.mark.parametrize(("length", "fits"), [(250, True), (251, False), (252, False)])
def test_library_of_a_long_name_has_its_manifest_or_is_not(pair, tmp_path, length, fits):
    """A name has 255 bytes at most, and that of the manifest is longer."""
    path = tmp_path / ("x" * length + ".so")
    if fits:
        loading.load(pair[0]).export(path)
        assert (loading.load(path)(*ARGS) == ARGS[0]).all()
    else:
        with pytest.raises(ArtifactError, match="cannot be written: File name too long"):
            loading.load(pair[0]).export(path)
    assert len([*tmp_path.iterdir()]) == (2 if fits else 0)
    with pytest.raises(ArtifactError, match="cannot be read: File name too long"):
        loading.load("a" * 253 + ".so")


def test_library_needs_no_file_beside_it(path):
    path.with_suffix(".json").unlink()
    assert (loading.load(path)(*ARGS) == ARGS[0]).all()


def test_edits_beside_the_library_change_nothing_and_are_undone(path):
    beside = path.with_suffix(".json")
    text = beside.read_text()
    beside.write_text(text.replace('"lanes": 8', '"lanes": 9'))
    assert loading.load(path).config == {"lanes": 8}
    assert stored.write_beside(stored.read(path), path) == ([f"{path.stem}.json"], [])
    assert beside.read_text() == text
    assert stored.write_beside(stored.read(path), path) == ([], [])
    beside.unlink()
    assert stored.write_beside(stored.read(path), path) == ([f"{path.stem}.json"], [])
    beside.write_text("{}")
    assert "json is no manifest of te-select" in stored.write_beside(stored.read(path), path)[1][0]
    assert beside.read_text() == "{}"


@pytest.mark.parametrize("edit", [('"lanes":8', '"lanes":9'), ("x86-64", "x86-65")])
def test_edit_of_the_manifest_inside_is_detected(path, edit):
    edit_inside(path, *edit, seal=False)
    with pytest.raises(ArtifactError, match="the SHA-256 differs"):
        loading.load(path)


def test_every_flipped_byte_and_every_cut_is_detected(path):
    image = path.read_bytes()
    rng = random.Random(2)
    places = {0, 4, 5, 16, 32, 40, 54, 56, len(image) - 1, *rng.sample(range(len(image)), 150)}
    for place in places:
        for damaged in (
            image[:place] + bytes([image[place] ^ 1 << rng.randrange(8)]) + image[place + 1 :],
            image[:place],
        ):
            path.write_bytes(damaged)
            with pytest.raises(ArtifactError) as caught:
                stored.read(path)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda image: b"", "is no ELF file of 64 bits"),
        (lambda image: image[:40], "holds no manifest: it was cut"),
        (lambda image: image[: len(image) // 2], "holds no manifest: it was cut"),
        (lambda image: image[:-1], r"\(the SHA-256 differs\): it was changed or cut"),
        (lambda image: b"int main() {}\n", "is no ELF file of 64 bits"),
        (
            lambda image: Path(umath.__file__).read_bytes(),
            "or not made by te-select 0.2 or later; expected a library as te_select.export",
        ),
        (lambda image: image + b"\0", r"\(the SHA-256 differs\): it was changed or cut"),
    ],
    ids=["empty", "start", "cut", "last byte", "text", "another", "longer"],
)
def test_what_is_no_library_is_told_apart(path, spoil, said, beside):
    image = path.read_bytes()
    path.write_bytes(spoil(image))
    if not beside:
        path.with_suffix(".json").unlink()
    with pytest.raises(ArtifactError, match=said):
        loading.load(path)


def test_hostile_headers_end_in_an_error_or_nothing(path):
    image = path.read_bytes()
    rng = random.Random(3)
    for _ in range(300):
        damaged = bytearray(image[:4096])
        for _ in range(rng.randrange(1, 30)):
            place = rng.randrange(64) if rng.random() < 0.5 else rng.randrange(len(damaged))
            damaged[place] = rng.randrange(256)
        damaged[:6] = image[:6]
        try:
            embedded.read(bytes(damaged), "it")
        except ArtifactError as error:
            assert "\n" not in str(error)


def test_kernel_of_many_is_exported_alone_and_sealed_again(pair, tmp_path):
    library = loading.load(pair[1])
    path = library[OTHER.name].export(tmp_path / "alone.so")
    found = stored.read(path)
    assert [record.workload for record in found.manifest.kernels] == [OTHER]
    assert json.loads(path.with_suffix(".json").read_text())["sha256"] == found.sha256
    kernel = loading.load(path)
    assert kernel.workload == OTHER
    ones, zeros = np.ones(8, "i4"), np.zeros(8, "i4")
    assert (kernel(ARGS[0], ones, zeros) == ARGS[0]).all()


def test_manifest_longer_than_the_one_inside_is_refused(path):
    found = stored.read(path)
    longer = stored.read(path).manifest
    versions = {**longer.versions, "more": "x" * 1000}
    with pytest.raises(ArtifactError, match="no room for this manifest"):
        found.alone(type(longer)(longer.kernels, longer.target, versions))


@pytest.mark.parametrize("name", ["select.so", "json.so", "types.abi3.so", "_json.so"])
def test_name_of_a_module_of_python_is_refused_with_another(pair, tmp_path, name):
    module = name.partition(".")[0]
    expected = f"place of its own module {module}; expected another name, such as"
    with pytest.raises(ArtifactError, match=expected):
        stored.write(stored.read(pair[0]), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_library_of_such_a_name_still_loads(pair, tmp_path):
    path = tmp_path / "select.so"
    path.write_bytes(pair[0].read_bytes())
    assert loading.load(path).workload == W
