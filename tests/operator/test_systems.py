"""The table of systems: rules, element types, type names; there is no other such table."""

import re

from hypothesis import given
from hypothesis import strategies as st
from pytest import importorskip, mark, raises

from te_select import BroadcastError, DTypeError, SelectError, Workload
from te_select.cli.workloads import WorkloadFlags, gather
from te_select.operator.broadcast import RULES
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.operator.systems import ONNX_WHERES, OPS, TYPE_NAMES, onnx_where
from tests.support import text_of
from tests.support.onednn_graph import only, select

CONSTRUCTORS = {
    "onnx": Workload.onnx_where,
    "openvino": Workload.openvino_select,
    "onednn": Workload.onednn_select,
}
ONE_OF = "expected one of"
WITH_PDPD = f"{ONE_OF} none, numpy, pdpd"
MODE = "auto_broadcast"
SHAPES = st.lists(st.sampled_from([1, 2, 3]), max_size=3).map(tuple)


def made(make, *args):
    try:
        workload = make(*args)
    except SelectError as error:
        return f"{type(error).__name__}: {error}"
    return workload


@given(st.sampled_from(list(OPS)), SHAPES, SHAPES, SHAPES, st.sampled_from(list(ELEMENT_TYPES)))
def test_flag_constructor_and_table_make_one_workload(op, cond, then, else_, dtype):
    def by_flag():
        shapes = (",".join(map(str, shape)) for shape in (cond, then, else_))
        return gather(WorkloadFlags(*shapes, dtype, op))[0][1]

    expected = made(CONSTRUCTORS[op], cond, then, else_, dtype)
    assert made(Workload.of_system, OPS[op], cond, then, else_, dtype, OPS[op].mode) == expected
    assert made(by_flag) == expected


@mark.parametrize(
    "op, options, message",
    [
        ("onednn", {"dtype": "int8"}, f"does not take int8; {ONE_OF} float32, float16, bfloat16"),
        ("onednn", {MODE: "pdpd"}, f"has no auto_broadcast 'pdpd'; {ONE_OF} none, numpy"),
        ("openvino", {"dtype": "complex64"}, "does not take complex64; it has no complex types"),
        ("openvino", {MODE: ["none"]}, f"has no auto_broadcast ['none']; {WITH_PDPD}"),
        ("openvino", {MODE: RULES[-1]}, f"has no auto_broadcast 'multidirectional'; {WITH_PDPD}"),
        ("onnx", {"dtype": "bfloat16", "opset": 15}, "does not take bfloat16; opset 16 does"),
        ("onnx", {"dtype": "float8_e5m2"}, "does not take float8_e5m2; it has no float8 types"),
        ("onnx", {"opset": 8}, "opset 8 has no Where; expected 9 or above"),
    ],
)
def test_refusal_names_system_value_and_what_is_accepted(op, options, message):
    named = {"onednn": "oneDNN Graph Select ", "openvino": "OpenVINO Select-1 "}
    of_onnx = {15: "Where of opset 15 ", 8: ""}
    with raises((BroadcastError, DTypeError)) as error:
        CONSTRUCTORS[op]((3,), (3,), (3,), **options)
    name = named.get(op) or of_onnx.get(options.get("opset"), "ONNX Where ")
    assert str(error.value) == f"{name}{message}"


def test_versions_of_where_are_those_of_onnx_and_of_the_plug_in():
    defs = importorskip("onnx").defs
    opsets = range(ONNX_WHERES[0], defs.onnx_opset_version() + 1)
    assert {defs.get_schema("Where", opset).since_version for opset in opsets} == {*ONNX_WHERES}
    plug_in = text_of("te_select/runtime/c/onnxruntime/where_kernel.c")
    first, last = re.search(r"FIRST_VERSION = (\d+), LAST_VERSION = (\d+)", plug_in).groups()
    assert (int(first), int(last)) == (ONNX_WHERES[0], ONNX_WHERES[-1])


def test_wheres_of_the_table_are_those_of_their_opsets():
    assert OPS["onnx"].refused == onnx_where(24).refused
    assert set(onnx_where(9).refused) - set(onnx_where(16).refused) == {"bfloat16"}


def test_a_word_means_one_element_type_in_every_system():
    meant = {}
    for names in TYPE_NAMES.values():
        for spelled, name in names.items():
            assert meant.setdefault(spelled, name) == name
    assert set(meant.values()) == set(ELEMENT_TYPES)


SPELLED = [  # in the order of our types
    ("onednn", "boolean s8 - s32 s64 u8 - - - f16 bf16 f32 f64 f8_e4m3 f8_e5m2"),
    ("openvino", "boolean i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2"),
    ("openvino", "bool i8 i16 i32 i64 u8 u16 u32 u64 fp16 bf16 fp32 fp64"),
]


@mark.parametrize("system, spelled", SPELLED)
def test_names_of_types_are_those_of_the_specification(system, spelled):
    for word, name in zip(spelled.split(), ELEMENT_TYPES, strict=False):
        assert word == "-" or TYPE_NAMES[system][word] == name


def test_names_in_onednn_graphs_are_those_of_the_table(tmp_path):
    for spelled, name in TYPE_NAMES["onednn"].items():
        assert only([select([4], [4], [4], dtype=spelled)], tmp_path).dtype == name


def test_onnx_names_are_those_of_its_protobuf():
    onnx = importorskip("onnx")
    numbers = {name.lower(): number for name, number in onnx.TensorProto.DataType.items()}
    for spelled, name in TYPE_NAMES["onnx"].items():
        there = onnx.helper.tensor_dtype_to_np_dtype(numbers[spelled])
        assert there.name == name


def test_openvino_names_are_those_of_its_types():
    openvino = importorskip("openvino")
    attributes = {word for word in TYPE_NAMES["openvino"] if not word.startswith(("bool", "fp"))}
    for word in (*attributes, "boolean"):
        assert getattr(openvino.Type, word).get_type_name() == word
