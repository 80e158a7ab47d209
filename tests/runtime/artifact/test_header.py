"""The C header of a library: what compilers say of it, and what it says of a kernel."""

import shutil
from dataclasses import replace
from json import dumps

from pytest import mark, skip

from te_select import Workload
from te_select.operator import broadcast, family
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.runtime.artifact import header
from te_select.runtime.artifact.manifest import NodeRecord, c_name, parse
from tests.support import alike, flat, output, shapes
from tests.support.runtime_standin import manifest

COMPILERS = {"C11": ("gcc", "-std=c11", "-x", "c"), "C++17": ("g++", "-std=c++17", "-x", "c++")}
STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only")
RULES = [
    alike(),
    Workload(*shapes("4,1 4,8 8"), "float16"),
    Workload(*shapes("3 3 3"), "int8", "none"),
    Workload(*shapes("3 2,3,4 3"), "int64", "pdpd", 1),
    Workload(*shapes("2,1 3 1"), "bfloat16", "multidirectional"),
    Workload(*shapes("class,int class,int int"), "complex64"),
    Workload(("cond", "out"), (), (), "bool", "multidirectional"),
]


def described(workloads, **target):
    plain = manifest(workloads, plain=True)
    return replace(plain, target={**plain.target, **target})


CUDA = {"kind": "cuda", "archs": ["sm_90"], "cpu_features": []}
LIBRARIES = {
    "every type": described([flat(5, name) for name in ELEMENT_TYPES]),
    "every rule": described(RULES),
    "CUDA": described(RULES, **CUDA),
    "a target with the end of a comment": described(RULES[:1], name='{"mcpu": "*/"}'),
}


HOSTILE = ["*/ int x; /*", "a\nb", "/*/", "**//", "ä\u202e中", "\ud800", "a\\", "??/", "\"'", "\0"]


def of_model(*nodes):
    """A library of two kernels for these nodes: name, place and number of the kernel."""
    library = described(RULES[:2])
    symbols = [record.workload.name for record in library.kernels]
    records = [
        NodeRecord(place, name, "Where-16", "compiled", "", symbols[kernel])
        for name, place, kernel in nodes
    ]
    return replace(library, nodes=tuple(records))


LIBRARIES["any shapes"] = manifest(list(family.places(["w4"])))
LIBRARIES["kernels beside any shapes"] = replace(
    described([*RULES[:2], *family.places(["w4"])]),
    nodes=(NodeRecord("graph#*/", "", "Where-16", "dispatched", "rank", family.FUNCTION),),
)
LIBRARIES["hostile names"] = of_model(*((name, f"graph#{name}", 1) for name in ["", *HOSTILE]))


def check(language, source, folder, *more):
    command = COMPILERS[language]
    if shutil.which(command[0]) is None:
        skip(f"{command[0]} is not installed")
    file = folder / "main"
    file.write_text(source)
    output(*command, *STRICT, *more, f"-I{folder}", file)


@mark.parametrize("language", COMPILERS)
@mark.parametrize("name", LIBRARIES)
def test_header_is_c11_and_cpp17_without_a_warning(language, name, tmp_path):
    (tmp_path / "lib.h").write_bytes(header.text(LIBRARIES[name]))
    check(language, '#include "lib.h"\n#include "lib.h"\nint used;\n', tmp_path)


@mark.parametrize("language", COMPILERS)
def test_headers_that_share_kernels_are_included_together(language, tmp_path):
    for name, workloads in {"a": RULES[:2], "b": RULES[1:], "c": RULES[:2]}.items():
        (tmp_path / f"{name}.h").write_bytes(header.text(described(workloads)))
    source = '#include "a.h"\n#include "b.h"\n#include "c.h"\n'
    check(language, source + "const char* used(void) { return te_select_error(); }\n", tmp_path)


def test_header_has_the_words_of_a_new_rule(monkeypatch):
    monkeypatch.setitem(broadcast.IN_WORDS, "toy", "toy, from axis {axis} on")
    monkeypatch.setattr("te_select.operator.broadcast.RULES", tuple(broadcast.IN_WORDS))
    monkeypatch.setitem(broadcast._COMBINE, "toy", broadcast._COMBINE["none"])
    text = header.text(described([Workload(*shapes("3 3 3"), "int8", "toy")])).decode()
    assert "Broadcast: toy, from axis -1 on." in text


def test_header_names_shapes_types_rule_and_sizes():
    text = header.text(LIBRARIES["every rule"]).decode()
    assert " *   then   float16 (its bits) [4,8]\n *   else_  float16 (its bits) [8]\n" in text
    assert "scalar, one element" in text
    assert "Broadcast: pdpd, else_ and cond to then, from its axis 1 on." in text
    name = c_name(RULES[5])
    parameters = (
        "const uint8_t* cond,\n    const float* then,\n    const float* else_,\n    float* out"
    )
    sizes = "int64_t size_class,\n    int64_t size_int"
    assert f"te_select_status {name}(\n    {parameters},\n    {sizes});" in text


def test_header_names_the_nodes_that_a_function_serves():
    nodes = ("attn", "graph#3", 1), ("", "graph#7", 1), ("attn", "graph/2:If.then_branch#0", 1)
    text = header.text(of_model(*nodes)).decode()
    first, second = text.split("/* out = cond ? then : else_")[1:]
    assert "Nodes" not in first
    listed = ["attn (graph#3)", "graph#7", "attn (graph/2:If.then_branch#0)"]
    assert " * Nodes of the model:\n" + "".join(f" *   {one}\n" for one in listed) in second


@mark.parametrize("name", HOSTILE)
def test_name_of_a_node_stays_in_its_line_of_the_comment(name):
    text = header.text(of_model((name, "graph#0", 0))).decode()
    plain = header.text(of_model(("name", "graph#0", 0))).decode()
    assert text.isascii() and text.count("\n") == plain.count("\n")
    assert text.count("/*") == plain.count("/*") and text.count("*/") == plain.count("*/")


def test_cuda_kernel_takes_streams_of_driver_and_runtime():
    text = header.text(LIBRARIES["CUDA"]).decode()
    assert "struct CUstream_st;\n" in text
    assert text.count("struct CUstream_st* stream);") == len(RULES)
    assert "memory of one CUDA device" in text
    assert "CUstream" not in header.text(LIBRARIES["every rule"]).decode()


def test_header_lists_the_dispatched_nodes_beside_kernels():
    text = header.text(LIBRARIES["kernels beside any shapes"]).decode()
    assert " * Nodes of the model:\n *   graph#* / */\n" in text
    assert "int32_t te_select_where_call_on(" in text and c_name(RULES[0]) in text


def test_manifest_names_the_functions_and_only_by_their_names():
    document = LIBRARIES["every rule"].to_json("0" * 64)
    assert parse(dumps(document).encode(), "x")[0] == LIBRARIES["every rule"]
    document["kernels"][0]["c_function"] = "system"
    assert parse(dumps(document).encode(), "x")[0] == LIBRARIES["every rule"]


@mark.parametrize("language", COMPILERS)
def test_other_names_call_the_same_function(language, tmp_path):
    library = described(RULES[:2])
    records = [
        replace(record, names=(f"own{i}", f"_Other{i}")) for i, record in enumerate(library.kernels)
    ]
    text = header.text(replace(library, kernels=tuple(records))).decode()
    call = "te_own0((const uint8_t*)0, (const float*)0, (const float*)0, (float*)0)"
    use = f"int use(void) {{ return {call} || te__Other1 == 0; }}\n"
    check(language, text + use, tmp_path, "-Wno-address")
