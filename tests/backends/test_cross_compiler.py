"""Which C compiler links libraries for another instruction set."""

import pytest

from te_select import ToolchainError
from te_select.backends import cross_compiler


def found_with(monkeypatch, *programs, zig=False, cc="", machine="aarch64"):
    """The compiler for a machine that is found if only these programs are installed."""
    monkeypatch.setattr(cross_compiler.shutil, "which", lambda name: name in programs or None)
    spec = object() if zig else None
    monkeypatch.setattr(cross_compiler.importlib.util, "find_spec", lambda _name: spec)
    monkeypatch.setattr(cross_compiler, "_links", lambda _command: "sysroot" in programs)
    machines = {"mine": "aarch64", "cc": "x86_64"}
    monkeypatch.setattr(cross_compiler, "made_for", lambda command: machines.get(command[0]))
    monkeypatch.setenv("CC", cc)
    cross_compiler._find.cache_clear()
    try:
        return cross_compiler.cross_compiler(f"{machine}-linux-gnu")
    finally:
        cross_compiler._find.cache_clear()


def test_cross_compiler_is_the_first_that_is_there(monkeypatch):
    gcc, clang = "aarch64-linux-gnu-gcc", ("clang", "ld.lld", "sysroot")
    assert found_with(monkeypatch, gcc, *clang, zig=True) == (gcc,)
    assert found_with(monkeypatch, *clang, zig=True)[0] == "clang"
    assert {"--target=aarch64-linux-gnu", "-fuse-ld=lld"} <= {*found_with(monkeypatch, *clang)}
    for lacking in clang:
        left = [program for program in clang if program != lacking]
        assert "ziglang" in found_with(monkeypatch, *left, zig=True)


@pytest.mark.parametrize("machine, glibc", [("aarch64", "2.17"), ("riscv64", "2.27")])
def test_ziglang_links_with_the_oldest_c_library(monkeypatch, machine, glibc):
    command = found_with(monkeypatch, zig=True, machine=machine)
    assert {f"{machine}-linux-gnu.{glibc}", "-fno-sanitize=all"} <= {*command}


def test_cc_is_taken_where_it_makes_code_for_the_target(monkeypatch):
    gcc = "aarch64-linux-gnu-gcc"
    assert found_with(monkeypatch, gcc, "mine", cc="mine -O3") == ("mine", "-O3")
    assert found_with(monkeypatch, gcc, cc="cc") == (gcc,)
    assert found_with(monkeypatch, gcc, cc="'") == (gcc,)


def test_missing_cross_compiler_names_all_three(monkeypatch):
    with pytest.raises(ToolchainError) as caught:
        found_with(monkeypatch, machine="x86_64")
    for name in (
        "x86_64-linux-gnu-gcc",
        "apt install gcc-x86-64-linux-gnu)",
        "clang and lld",
        "pip install ziglang",
    ):
        assert name in str(caught.value)
