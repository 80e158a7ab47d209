"""Static libraries and objects: which names they have, and several of them in one program."""

import json
import platform
import subprocess
from shutil import which

import numpy as np
import tvm_ffi
from pytest import fixture, mark, raises

from te_select import ArgumentError, ToolchainError, export, read_model
from te_select.backends import static_code
from te_select.runtime.artifact.manifest import c_name
from tests.support import c_programs, flat, masked_rows, output, python
from tests.support.cases import the_others_slow
from tests.support.machines import SEVERAL
from tests.support.onednn_graph import OPEN, select

SHARED = masked_rows(4, 8)
ONE = flat(4, "int32")
TWO = flat(1 << 20, "uint8")
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "one.h"
#include "two.h"

int main(void) {{
  uint8_t cond[] = {{1, 0, 0, 1}};
  int32_t x[] = {{1, 2, 3, 4}}, y[] = {{5, 6, 7, 8}}, z[4];
  if ({one}(cond, x, y, z)) return 1;
  printf("%d %d %d %d\\n", z[0], z[1], z[2], z[3]);
  uint8_t* large = calloc(4, 1 << 20);
  memset(large, 1, 2 << 20);
  if ({two}(large, large + (1 << 20), large + (2 << 20), large + (3 << 20))) return 2;
  if (large[3 << 20] != 1 || large[(4 << 20) - 1] != 1) return 3;
  float then[32] = {{0}}, e = 2, out[32];
  if ({shared}(cond, then, &e, out) || out[0] != 0 || out[8] != 2) return 4;
  if ({two}(large, NULL, large, large) != TE_SELECT_INVALID_ARGUMENT) return 5;
  if (!strstr(te_select_error(), "then has a null data pointer")) return 6;
  if ({one}(cond, NULL, y, z) != TE_SELECT_INVALID_ARGUMENT) return 7;
  return !strstr(te_select_error(), "16 bytes");
}}
"""


@fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("archives")
    export([SHARED, ONE], made / "one.so", static=True)
    export([TWO, SHARED], made / "two.so", SEVERAL, static=True)
    names = {"one": c_name(ONE), "two": c_name(TWO), "shared": c_name(SHARED)}
    (made / "main.c").write_text(PROGRAM.format(**names))
    return made


def linked(folder, out, *files, compiler=None):
    compiler = compiler or [which("gcc") or which("cc")]
    words = [*compiler, "-Wall", "-Werror", "main.c", *files, "-pthread", "-ldl", "-o", out]
    output(*words, cwd=folder)
    assert output(folder / out, cwd=folder) == "1 6 7 4\n"


@mark.parametrize("files", [("one.a", "two.a"), ("two.a", "one.a"), ("two.a", "./one.so")])
def test_two_libraries_share_a_kernel_and_the_message(folder, files):
    linked(folder, "-".join(file.strip("./") for file in files), *files)


def test_program_without_shared_libraries_runs(folder):
    linked(folder, "static", "-static", "one.a", "two.a", "-w", "-Wl,--no-warnings")


@mark.slow
@mark.skipif(which("musl-gcc") is None, reason="musl-gcc is not installed")
def test_program_of_musl_runs(folder):
    linked(folder, "musl", "-static", "one.a", "two.a", compiler=["musl-gcc"])


@mark.parametrize("config", [None, {"bytes_per_thread": 0}])
def test_objects_of_tvm_in_one_program_keep_their_launcher(tmp_path, config):
    """TVM's loader sets the pointer that its objects share; ours may have threads or not."""
    sizes = flat("n")
    kernel = c_programs.export(tmp_path, sizes, config)
    kernel.compile("tvm_neighbour.c", "neighbour.o", "-c")
    for order in (
        ("mask.a", "neighbour.o"),
        ("neighbour.o", "mask.a"),
        ("neighbour.o", "./mask.so"),
    ):
        program = kernel.compile("beside_tvm.c", "beside_tvm", *order)
        assert c_programs.output(program) == "1 1 0\n"
    for library in ("mask.a", "mask.so"):  # an object for TVM names it
        assert b"TVMBackend" not in (tmp_path / library).read_bytes()


def test_only_the_functions_of_the_header_can_be_called(folder):
    listed = output("nm", "-g", folder / "two.a")
    defined = {line.split()[2] for line in listed.splitlines() if len(line.split()) == 3}
    assert defined == {c_name(TWO), c_name(SHARED), *static_code.SHARED}


def test_library_has_no_executable_stack_and_no_symbols(folder):
    listed = output("readelf", "-lSW", folder / "one.so")
    assert not {"RWE", ".symtab"} & {*listed.split()}


def test_an_object_has_the_functions_of_tvm_ffi_alone(tmp_path):
    export([ONE, TWO], tmp_path / "one.so", static="object")
    listed = output("nm", "-g", "--defined-only", tmp_path / "one.o")
    kinds = {line.split()[2]: line.split()[1] for line in listed.splitlines()}
    functions = {f"__tvm_ffi_{work.name}": "W" for work in (ONE, TWO)}
    assert kinds == functions | {"te_select_pool_v7": "u"}
    assert not (tmp_path / "one.a").exists()


def test_objects_that_share_a_kernel_become_one_library(tmp_path):
    compiler = which("gcc") or which("cc")
    for name, works in (("one", [SHARED, ONE]), ("two", [SHARED])):
        export(works, tmp_path / f"{name}.so", static="object")
    words = [compiler, "-shared", "one.o", "two.o", "-o", "both.so"]
    subprocess.run(words, cwd=tmp_path, check=True)
    library = tvm_ffi.load_module(str(tmp_path / "both.so"))
    z = np.zeros(4, np.int32)
    library[ONE.name](np.array([1, 0, 0, 1], bool), z + 1, z + 2, z)
    assert z.tolist() == [1, 2, 2, 1]


@mark.parametrize("static", [True, "object"])
def test_plug_ins_with_threads_stay_when_they_are_closed(tmp_path, static):
    """Their helpers wait in their code; those of the second have the pool of the first."""
    work = flat(1 << 22)
    export([work], tmp_path / "large.so", static=static)
    given = "large.a" if static is True else "large.o"
    whole = ["-shared", "-Wl,--whole-archive", given, "-Wl,--no-whole-archive"]
    for name in ("first.so", "second.so"):
        output(which("gcc") or which("cc"), *whole, "-o", name, cwd=tmp_path)
    script = f"""
        import ctypes, _ctypes, time
        first, second = (ctypes.CDLL(f"./{{name}}.so") for name in ("first", "second"))
        memory = ctypes.create_string_buffer(4 << 24)
        places = [ctypes.c_void_p(ctypes.addressof(memory) + (k << 24)) for k in range(4)]
        for _ in range({4 * (static is True)}):  # an object has no function of C
            assert second.{c_name(work)}(*places) == 0
        for library in (second, first):
            _ctypes.dlclose(library._handle)
        time.sleep(0.1)
        maps = open("/proc/self/maps").read()
        print("first.so" in maps, "second.so" in maps)
    """
    assert python(script, cwd=tmp_path, TE_SELECT_NUM_THREADS="2") == "True True\n"


def test_static_of_another_value_is_refused(tmp_path):
    with raises(ArgumentError, match="static is 'archive'; expected False, True or"):
        export([ONE], tmp_path / "one.so", static="archive")


def test_same_workloads_give_the_same_bytes(folder, tmp_path):
    export([SHARED, ONE], tmp_path / "other.so", static=True)
    assert (tmp_path / "other.a").read_bytes() == (folder / "one.a").read_bytes()
    assert (tmp_path / "other.h").read_bytes() == (folder / "one.h").read_bytes()


@mark.parametrize(
    "variable, value, message",
    [
        ("OBJCOPY", "no-such-program", "OBJCOPY is 'no-such-program', not a program; set it to"),
        ("AR", "'", 'AR is "\'", not a program; set it to ar'),
        ("AR", "false", "false failed with exit code 1"),
    ],
)
def test_missing_tools_are_named_and_nothing_is_written(
    tmp_path, monkeypatch, variable, value, message
):
    monkeypatch.setenv(variable, value)
    with raises(ToolchainError, match=message):
        export([ONE], tmp_path / "mask.so", static=True)
    assert not list(tmp_path.iterdir())


def test_tools_of_another_machine_are_those_of_its_triple(monkeypatch):
    triple = "riscv64-linux-gnu"
    for there, found in (("llvm", "llvm-ar"), ("ar", f"{triple}-ar")):
        monkeypatch.setattr(
            static_code.shutil, "which", lambda name, there=there: name if there in name else None
        )
        assert static_code._tool("ar", "AR", triple) == (found,)
    assert static_code._tool("ar", "AR", f"{platform.machine()}-linux-gnu") == ("ar",)
    monkeypatch.setattr("te_select.backends.static_code.shutil.which", lambda _name: None)
    said = f"{triple}-ar or llvm-ar, which is not found; .* install binutils-{triple}\\)"
    with raises(ToolchainError, match=said):
        static_code._tool("ar", "AR", triple)


OF_MODEL = """
#include <stdio.h>
#include "model.h"

int main(void) {{
  uint8_t cond[] = {{1, 0, 0, 1}};
  float x[] = {{1, 2, 3, 4}}, y = 9, out[] = {{1, 9, 9, 4}}, again[4];
  if ({call}) return 1;
  int64_t shape[] = {{4}};
  te_select_where_call call = {{.ndim = 1,
                                .width = sizeof(float),
                                .shape = {{4}},
                                .data = {{(char*)cond, (char*)x, (char*)&y, (char*)again}}}};
  int fits = te_select_broadcast(&call, TE_SELECT_COND, 1, shape, NULL) &&
             te_select_broadcast(&call, TE_SELECT_THEN, 1, shape, NULL) &&
             te_select_broadcast(&call, TE_SELECT_ELSE, 0, NULL, NULL) &&
             te_select_broadcast(&call, TE_SELECT_OUT, 1, shape, NULL);
  if (!fits || te_select_where_call_on(&call, NULL, NULL, 0) < 0) return 2;
  for (int i = 0; i < 4; ++i) {{
    if (out[i] != again[i]) return 3;
  }}
  return puts("1 6 7 4") < 0;
}}
"""


@mark.parametrize("with_compiled", the_others_slow([True, False], [True]))
def test_header_declares_what_serves_dispatched_nodes(tmp_path, monkeypatch, with_compiled):
    monkeypatch.setattr(
        "te_select.operator.family.parts_of_width", lambda width: [f"w{width}"]
    )  # rows take 10 s
    ops = [select([4], [4], []), select([4], [OPEN], [])]
    for i, each in enumerate((*ops[1]["inputs"], *ops[1]["outputs"])):
        each["id"] = 10 + i
    (tmp_path / "graph.json").write_text(json.dumps({"graph": ops}))
    nodes = read_model(tmp_path / "graph.json")[0 if with_compiled else 1 :]
    export(nodes, tmp_path / "model.so", static=True)
    text = (tmp_path / "model.h").read_text()
    assert "serves operands of any shapes.\n * Nodes of the model:\n *   mask (graph#1) */" in text
    call = f"{c_name(nodes[0].workload)}(cond, x, &y, out)" if with_compiled else "0"
    (tmp_path / "main.c").write_text(OF_MODEL.format(call=call))
    for file in ("./model.so", "model.a"):
        linked(tmp_path, f"by-{file.strip('./')}", file)
    export(nodes, tmp_path / "other.so", static="object")
    listed = output("nm", "-g", "--defined-only", tmp_path / "other.o")
    assert set(static_code.ANY_SHAPES) < set(listed.split())
