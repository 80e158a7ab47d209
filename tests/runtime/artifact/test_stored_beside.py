"""The header and the static library beside a library: whole, replaced only where they are ours."""

import stat
from dataclasses import replace

from pytest import fixture, mark, raises

from te_select import ArtifactError
from te_select.runtime.artifact.manifest import c_name
from te_select.runtime.artifact.stored import check_path, read, write, write_beside
from tests.support import flat
from tests.support.runtime_standin import library_of, manifest

W = flat(8)
AR = b"!<arch>\n" + b"/".ljust(48) + b"4".ljust(10) + b"`\n" + b"\0" * 4
ARCHIVE = AR + b"te_select.o/ " + bytes(100)


@fixture
def plain():
    """A library without plain C functions."""
    return read(library_of(W))


@fixture
def with_c(plain):
    """A library with plain C functions, and a static library of the same build."""
    return replace(plain, manifest=manifest([W], plain=True), static={".a": ARCHIVE})


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def test_header_and_static_library_lie_beside_the_library(with_c, tmp_path):
    path = write(with_c, tmp_path / "mask.so")
    assert listed(tmp_path) == ["mask.a", "mask.h", "mask.json", "mask.so"]
    assert path.with_suffix(".a").read_bytes() == ARCHIVE
    assert c_name(W).encode() in path.with_suffix(".h").read_bytes()
    assert not path.with_suffix(".h").stat().st_mode & stat.S_IXUSR


def test_those_of_an_earlier_export_are_replaced_or_removed(with_c, plain, tmp_path):
    path = write(with_c, tmp_path / "mask.so")
    write(replace(with_c, static={".a": ARCHIVE + b"new"}), path)
    assert path.with_suffix(".a").read_bytes() == ARCHIVE + b"new"
    write(replace(with_c, static={}), path)
    assert listed(tmp_path) == ["mask.h", "mask.json", "mask.so"]
    write(plain, path)  # as an older te-select has built it
    assert listed(tmp_path) == ["mask.json", "mask.so"]


@mark.parametrize(
    "ending, text, what",
    [
        (".h", b"#define MASK 1\n", "header"),
        (".a", AR + b"mask.o/ ", "static library"),
        (".o", b"\x7fELF of others", "object file"),
    ],
)
def test_file_that_no_export_has_written_is_not_replaced(with_c, tmp_path, ending, text, what):
    other = tmp_path / f"mask{ending}"
    other.write_bytes(text)
    expected = rf"mask\{ending} is no {what} of te-select, and is not replaced by one"
    both = replace(with_c, static={".a": ARCHIVE, ".o": b""})
    with raises(ArtifactError, match=expected):
        write(both, tmp_path / "mask.so")
    assert listed(tmp_path) == [other.name]
    assert other.read_bytes() == text


@mark.parametrize("ending", [".so", ".a"])
def test_folder_of_such_a_name_is_refused(with_c, tmp_path, ending):
    (tmp_path / f"mask{ending}").mkdir()
    with raises(ArtifactError, match=rf"mask\{ending} (cannot be written: it is a|is no )"):
        check_path(tmp_path / "mask.so", with_c.static)
    assert listed(tmp_path) == [f"mask{ending}"]


def test_file_that_is_not_written_stays_where_it_is_no_ones(plain, tmp_path):
    """The library has no plain functions, and the header and the archive are the user's."""
    for ending in (".h", ".a"):
        (tmp_path / f"mask{ending}").write_text("mine")
    write(plain, tmp_path / "mask.so")
    assert listed(tmp_path) == ["mask.a", "mask.h", "mask.json", "mask.so"]
    assert (tmp_path / "mask.a").read_text() == "mine"


def test_header_of_another_library_is_written_again(with_c, tmp_path):
    """As where an export was killed between the library and its header."""
    path = write(with_c, tmp_path / "mask.so")
    header = path.with_suffix(".h")
    right = header.read_bytes()
    for wrong in (right.replace(b"8", b"9"), None):
        header.unlink() if wrong is None else header.write_bytes(wrong)
        assert write_beside(with_c, path) == (["mask.h"], [])
        assert header.read_bytes() == right
    header.write_bytes(b"#define MASK 1\n")
    assert "mask.h is no header of te-select" in write_beside(with_c, path)[1][0]
    assert header.read_bytes() == b"#define MASK 1\n"
