"""Workloads: the systems they come from, their names, and their JSON form."""

import itertools
import pickle
import re
from functools import partial
from json import dumps, loads

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pytest import mark, raises

from te_select import BroadcastError, DTypeError, SelectError, Workload
from te_select.operator.broadcast import RULES
from te_select.operator.dtypes import ELEMENT_TYPES
from tests.support import shapes

DIMS = st.integers(0, 5) | st.sampled_from(["n", "m", "x", "n_x2", "c1", "e"])


@st.composite
def workloads(draw):
    full = draw(st.lists(DIMS, max_size=5))
    rule = draw(st.sampled_from(RULES))

    def operand():
        return tuple(full if rule == "none" else (d if draw(st.booleans()) else 1 for d in full))

    axis = draw(st.sampled_from([-1, 0])) if rule == "pdpd" else -1
    branches = tuple(full)
    return Workload(
        operand(), branches, operand(), draw(st.sampled_from(list(ELEMENT_TYPES))), rule, axis
    )


@given(workloads())
def test_name_is_a_c_identifier(workload):
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", workload.name, re.ASCII)
    assert len(workload.name) <= 255


def test_name_of_more_than_200_characters_is_cut_and_has_a_hash():
    for dtype, length in (("float16", 200), ("bfloat16", 200 + len("_h0123456789"))):
        assert len(Workload((1,) * 30, (1,) * 58, (), dtype).name) == length


@given(workloads(), workloads())
def test_names_are_equal_exactly_where_workloads_are(a, b):
    assert (a.name == b.name) == (a == b)


@mark.parametrize(
    "a, b",
    [
        ((("axb",), ("axb",), ()), (("a", "b"), ("a", "b"), ())),
        ((("n_tn",), ("n_tn",), ()), (("n",), ("n",), ())),
        (((2,) * 48, (2,) * 48, ()), ((2,) * 48, (2,) * 48, (1,))),  # behind the cut
    ],
)
def test_names_of_shapes_that_read_alike_differ(a, b):
    one, other = (Workload(*each, auto_broadcast="multidirectional").name for each in (a, b))
    assert one != other and len(one) < 255


def test_name_is_readable_and_stays_what_it_is():
    workload = Workload(*shapes("1,1,128,128 4,12,128,128 ()"))
    assert workload.name == "select_float32_numpy_c1x1x128x128_t4x12x128x128_e"
    pdpd = Workload(*shapes("3 2,3,4 3,1"), "bfloat16", "pdpd", 1)
    assert pdpd.name == "select_bfloat16_pdpd1_c3_t2x3x4_e3x1"
    named = Workload(("n",), ("n",), ())
    assert named.name == "select_float32_numpy_cn_tn_e_hedb338c578"


@given(workloads())
def test_json_and_pickle_lead_back_to_an_equal_workload(workload):
    back = Workload.from_json(loads(dumps(workload.to_json())))
    assert back == pickle.loads(pickle.dumps(workload)) == workload
    assert hash(back) == hash(workload)
    assert back.out_shape == workload.out_shape


def test_lists_and_numpy_dims_and_types_make_the_same_workload():
    a = Workload([np.int64(2), 3], np.array([2, 3]), [], np.dtype("float16"))  # type: ignore[arg-type]
    assert a == Workload(*shapes("2,3 2,3 ()"), "float16")
    assert a.to_json()["cond_shape"] == [2, 3]
    by_axis = [Workload(*shapes("2,3 2,3 2"), "float32", "pdpd", axis) for axis in (0, np.int64(0))]
    assert by_axis[0] == by_axis[1] and by_axis[0].name == by_axis[1].name
    assert dumps(by_axis[1].to_json())


def test_str_says_shapes_type_and_rule():
    text = str(Workload(*shapes("3 n,3 ()"), "int8", "pdpd", 1))
    assert text == "cond [3] then [n,3] else [] -> [n,3] int8 pdpd axis 1"


def test_systems_have_their_rules_and_axes():
    assert Workload.onednn_select(*shapes("1 3 2,1")).auto_broadcast == "numpy"
    wide = Workload.openvino_select(*shapes("5,4,1,1,1 5,1,8,1,1 1,1,5,1"))
    assert wide.auto_broadcast == "multidirectional"
    pdpd = Workload.openvino_select(*shapes("3 2,3,4 3"), auto_broadcast="pdpd", axis=1)
    other = Workload.openvino_select(*shapes("4 2,3,4 4"), axis=1)
    assert (pdpd.axis, other.axis) == (1, -1)
    assert Workload.onnx_where(*shapes("3,1 2 2"), "bfloat16").out_shape == (3, 2)


OF_ONEDNN = ("float32", "float16", "bfloat16")


NAMED = Workload(*shapes("n m,n ()"))
THREE = ((3,), (3,), (3,))
JSON = Workload(*THREE).to_json()
NO_SHAPES = [{3}, {3: 3}, [2**56, 2], [10**5000]]
NO_RULES = [([], -1), ({}, -1), (None, -1), ("pdpd", 10**5000), ("pdpd", 1.0)]
REFUSED = [
    *((BroadcastError, NAMED.bind, (sizes,), "is not a mapping of names to sizes")
      for sizes in (3, None, [3], "n")),
    (BroadcastError, NAMED.bind, ({"n": 3},), "m"),
    *((DTypeError, Workload.onednn_select, (*THREE, name), ", ".join(OF_ONEDNN))
      for name in sorted(ELEMENT_TYPES.keys() - {*OF_ONEDNN})),
    (BroadcastError, Workload.openvino_select,
     ((5, 1, 1, 1, 1), (5, 1, 8, 1, 1), (1, 1, 5, 1), "int8", "none"), ""),
    *((BroadcastError, partial(Workload.onnx_where, opset=opset), THREE, "9")
      for opset in (8, 0, -1, True, "16", None)),
    (DTypeError, Workload.from_json, ({**JSON, "dtype": "f32"},), "'f32' is not supported"),
    (BroadcastError, Workload.from_json, ({**JSON, "layout": "NCHW"},), "layout"),
    *((SelectError, Workload.from_json, (fields,), "")
      for fields in ({}, {"cond_shape": [2]}, {"unheard": 1}, None)),
    *((BroadcastError, Workload, (shape, *THREE[1:]), "")
      for shape in (*NO_SHAPES, itertools.repeat(1))),
    *((BroadcastError, Workload, (*THREE, "float32", *each), "") for each in NO_RULES),
    (DTypeError, Workload, (*THREE, {"names": ["a" * 999]}), ""),
]  # fmt: skip


@mark.parametrize("error, function, given, said", REFUSED, ids=map(str, range(len(REFUSED))))
def test_refusal_is_one_short_line(error, function, given, said):
    with raises(error, match=said or None) as caught:
        function(*given)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
