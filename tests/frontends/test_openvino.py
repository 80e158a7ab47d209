"""OpenVINO IR: the status, shapes and producer of every Select of a network and of its bodies."""

from contextlib import suppress

import numpy as np
from pytest import importorskip, mark

from te_select import ModelError, Workload
from te_select.verify import reference
from tests.frontends.told import check
from tests.support import shapes
from tests.support.openvino_ir import AXIS, edge, layer, net, parameter, read, select

importorskip("defusedxml")

OF_NONE = Workload.openvino_select(*[("parameter0_0", 4)] * 3, auto_broadcast="none")
PDPD = Workload.openvino_select(*shapes("3 2,3,4 3,4"), "float32", "pdpd", 1)


def of_isnan():
    """IsNaN of a tensor is as large as the tensor, but no shape says so."""
    large, one = ("FP32", [-1, 4]), ("FP32", [])
    layers = [
        parameter(0, "FP32", "?,4"),
        layer(1, "IsNaN", [large], [("BOOL", [-1, 4])]),
        layer(2, "Const", outputs=[one], element_type="f32", shape="", offset="0"),
        layer(4, "Convert", [one], [one]),
        layer(3, "Select", [("BOOL", [-1, 4]), one, large], [large]),
    ]
    edges = [((0, 0), (1, 0)), ((1, 1), (3, 0)), ((2, 0), (4, 0)), ((4, 1), (3, 1))]
    return net(layers, [*edges, ((0, 0), (3, 2))])


def of_open_rank():
    one = ("FP32", [])
    layers = [
        parameter(0, "BOOL", "4"),
        parameter(1, "FP32", "?"),
        parameter(2, "I64", "?"),
        layer(4, "Reshape", [("FP32", [-1]), ("I64", [-1])], [one]),
        layer(3, "Select", [("BOOL", [4]), one, one], [one]),
    ]
    edges = [((1, 0), (4, 0)), ((2, 0), (4, 1)), ((0, 0), (3, 0)), ((4, 2), (3, 1))]
    return net(layers, [*edges, ((4, 2), (3, 2))])


def of_ints(between=(), last_kind="Reshape", at=1):
    """A Select before some layers of arithmetic, before one that reads a shape."""
    vector = ("I64", [3])
    layers = [
        parameter(0, "BOOL", "3"),
        parameter(1, "I64", "3"),
        parameter(2, "FP32", "?"),
        layer(3, "Select", [("BOOL", [3]), vector, vector], [vector]),
        *(layer(10 + k, kind, [vector, vector], [vector]) for k, kind in enumerate(between)),
        layer(4, last_kind, [("FP32", [-1])] * at + [vector], [("FP32", [-1, -1, -1])]),
    ]
    edges = [((0, 0), (3, 0)), ((1, 0), (3, 1)), ((1, 0), (3, 2))]
    edges += [((2, 0), (4, k)) for k in range(at)]
    last = (3, 3)
    for k in range(len(between)):
        edges += [(last, (10 + k, 0)), ((1, 0), (10 + k, 1))]
        last = (10 + k, 2)
    return net(layers, [*edges, (last, (4, at))])


ARITHMETIC = (
    "Abs Add Broadcast Concat Convert Divide Equal Floor FloorMod Gather Maximum Minimum Mod "
    "Multiply Negative ReduceMax ReduceMin ReduceProd ReduceSum Reshape ScatterElementsUpdate "
    "ScatterNDUpdate ScatterUpdate Slice Split Squeeze StridedSlice Subtract Tile Unsqueeze "
    "VariadicSplit"
)
READERS = (  # by the input that is a shape
    "RandomUniform Range",
    "Broadcast Interpolate Pad Range Reshape Slice StridedSlice Tile TopK",
    "Pad Range Slice StridedSlice VariadicSplit",
)


def of_sources(last="Const"):
    """A Select of layers without inputs."""
    types = ("BOOL", "FP32", "FP32")
    kinds = ("Const", "Const", last)
    layers = [layer(i, kinds[i], outputs=[(p, [2])], shape="2") for i, p in enumerate(types)]
    layers.append(layer(3, "Select", [(p, [2]) for p in types], [("FP32", [2])]))
    return net(layers, [((i, 0), (3, i)) for i in range(3)])


BODY, END = '<layers><layer id="0"><body>', "</body></layer></layers>"
READ = {
    "all that a table needs": (select("1,4", "2,4", ""), {
        "workload": Workload.openvino_select(*shapes("1,4 2,4 ()")), "place": "net#3",
        "op": "Select-1", "name": "select3", "status": "compiled",
        "cond_producer": "graph input"}),
    "mode numpy": (select("5,4", "1,4", "4", auto_broadcast="numpy"),
        {"workload": Workload.openvino_select(*shapes("5,4 1,4 4"))}),
    **{f"mode {each}": (select("?,4", "?,4", "?,4", auto_broadcast=each), {"workload": OF_NONE})
       for each in ("none", "explicit")},
    "mode pdpd": (
        select("3", "2,3,4", "3,4", auto_broadcast="pdpd", **{AXIS: "1".zfill(19)}),
        {"workload": PDPD}),
    "mode pdpd without an axis": (
        select("2", "2,3,4", "2,3", auto_broadcast="pdpd"),
        {"workload": Workload.openvino_select(*shapes("2 2,3,4 2,3"), "float32", "pdpd", 0)}),
    "dim of 19 digits": (select("4", "", "").replace('shape="4"', f'shape="{4:019}"'),
        {"cond_shape": (4,)}),
    "open dims": (select("1..8,?", "", ""), {
        "status": "compiled", "cond_shape": ("parameter0_0", "parameter0_1"),
        "dims": {
            "parameter0_0": "dim 0 of Parameter 'parameter0', 1..8",
            "parameter0_1": "dim 1 of Parameter 'parameter0'"}}),
    **{f"dim {each}": (select(each, "", ""), {"cond_shape": ("parameter0_0",)})
       for each in ("-1", "..8", "1..")},
    "open dims of two parameters": (select("?,4", "?,4", ""), {"status": "dispatched"}),
    "rank that is not known": (select("...", "2", ""),
        {"status": "dispatched", "cond_shape": None, "else_shape": ()}),
    "missing precisions": (select("4", "4", "", precisions=False), {"dtype": "float32"}),
    **{each: (select("4", "4", "", each), {"status": "refused"})
       for each in ("STRING", "I4", "U4", "NF4", "U1")},
    **{each: (select("4", "4", "", each), {"status": "dispatched", "dtype": None})
       for each in ("UNSPECIFIED", "undefined", "dynamic")},
    "open dim of a layer": (of_isnan(), {
        "status": "dispatched", "cond_producer": "IsNaN", "cond_shape": ("?", 4),
        "else_shape": ("parameter0_0", 4), "then_shape": ()}),  # made of scalars, so it is one
    "open rank": (of_open_rank(), {"status": "dispatched"}),
    **{f"shape that {kind} reads at {at}": (of_ints((), kind, at), {"status": "shape"})
       for at, kinds in enumerate(READERS) for kind in kinds.split()},
    "shape behind all arithmetic": (of_ints(ARITHMETIC.split()), {"status": "shape"}),
    "constants": (of_sources(), {"status": "folded", "cond_producer": "initializer"}),
    **{f"made anew by {each}": (of_sources(each), {"status": "compiled"})
       for each in ("Assign", "Multinomial", "RandomUniform", "ReadValue")},
    "names of other namespaces": (
        select("4", "4", "").replace("<net", '<net xmlns="http://x" onnx:op="1"', 1),
        {"status": "compiled"}),
    "layer that states no operator set": (select("4", "4", "", of=""), {"status": "compiled"}),
    **{f"Select of {each}": (select("4", "4", "", of=each),)
       for each in ("extension", "opset", "Opset1")},
    "axis that only pdpd reads": (
        select("4", "2,4", "", auto_broadcast="numpy", axis="first"),
        {"workload": Workload.openvino_select(*shapes("4 2,4 ()"))}),
    "mode in capitals": (select("1,4", "2,4", "", auto_broadcast="NUMPY"), {"status": "compiled"}),
    "no Select": (net([parameter(0, "FP32", "4")], []),),
    "bodies 32 deep": (f"<net>{BODY * 32}{END * 32}</net>",),
    "a layer in a layer": ('<net><layers><layer id="0"><layer id="1"/></layer></layers></net>',),
}  # fmt: skip


@mark.parametrize("case", READ)
def test_select_is_read_as_openvino_runs_it(tmp_path, case):
    text, *expected = READ[case]
    check(read(text, tmp_path), *expected)


ATTRIBUTES = [
    {},
    {"auto_broadcast": "numpy", AXIS: "0"},
    {AXIS: "0"},
    *({"auto_broadcast": mode} for mode in ("pdpd", "PDPD", "Numpy", "none", "explicit", "", "x")),
    *({"auto_broadcast": "pdpd", name: "1"} for name in ("axis", "auto_broadcast_axis")),
    *(
        {"auto_broadcast": "pdpd", AXIS: axis}
        for axis in ("-1", "0", "1", "2", " 1", "01", "-2", "+1", "", "x", "9" * 19)
    ),
]


@mark.parametrize("version", ["opset1", "opset8", "opset16", "extension"])
@mark.parametrize("then", [(3,), (3, 3), (2, 3, 3)], ids=len)
@mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_defaults_of_attributes_are_those_of_openvino(tmp_path, attributes, then, version):
    """What it refuses is no Select of ours either."""
    openvino = importorskip("openvino")
    text = select("3", ",".join(map(str, then)), "3", **attributes)
    head, _, tail = text.rpartition('version="opset1"')  # that of the Select
    text = f'{head}version="{version}"{tail}'
    result = layer(4, "Result", [("FP32", then)])
    text = text.replace("</layers><edges>", f"{result}</layers><edges>{edge((3, 3), (4, 0))}")
    operands = np.array([True, False, True]), np.zeros(then, "f4"), np.array([1, 2, 3], "f4")
    out = [openvino.Tensor(openvino.Type.f32, openvino.Shape([]))]
    try:
        made = openvino.Core().read_model(text.encode(), b"")
        assert made.evaluate(out, [openvino.Tensor(each) for each in operands])
    except RuntimeError:
        with suppress(ModelError):
            assert not read(text, tmp_path)
        return
    (node,) = read(text, tmp_path)
    cond, x, y = reference.placed(node.workload, *operands)
    np.testing.assert_array_equal(np.where(cond, x, y), out[0].data)


def body(select_edges, cond="BOOL"):
    """A body that selects from its three parameters; its Select is layer 3."""
    layers = [parameter(i, p, "?,4") for i, p in enumerate((cond, "FP32", "FP32"))]
    ports = [(p, [-1, 4]) for p in (cond, "FP32", "FP32")]
    layers.append(layer(3, "Select", ports, [("FP32", [-1, 4])]))
    joined = "".join(edge(*pair) for pair in select_edges)
    return f"<layers>{''.join(layers)}</layers><edges>{joined}</edges>"


EDGES = [((i, 0), (3, i)) for i in range(3)]


def outer(kind, bodies, maps, extra=""):
    """A network whose layer 2 has bodies, fed with a cond and a tensor that is as large."""
    inputs = [("BOOL", [-1, 4]), ("FP32", [-1, 4])]
    layers = [
        parameter(0, "FP32", "?,4"),
        layer(1, "IsNaN", [("FP32", [-1, 4])], [("BOOL", [-1, 4])]),
        layer(2, kind, inputs, [("FP32", [-1, 4])], extra=maps + extra + bodies),
    ]
    return net(layers, [((0, 0), (1, 0)), ((1, 1), (2, 0)), ((0, 0), (2, 1))])


def map_of(tag, entries):
    inside = "".join(
        f'<input external_port_id="{port}" internal_layer_id="{to}"{more}/>'
        for port, to, more in entries
    )
    return f"<{tag}>{inside}</{tag}>"


def test_bodies_of_if_are_read_in_their_places(tmp_path):
    whole = [(0, 0, ""), (1, 1, ""), (1, 2, "")]
    maps = map_of("then_port_map", whole) + map_of("else_port_map", whole)
    bodies = f"<then_body>{body(EDGES)}</then_body><else_body>{body(EDGES)}</else_body>"
    found = read(outer("If", bodies, maps), tmp_path)
    assert [n.place for n in found] == ["net/2:If.then_body#3", "net/2:If.else_body#3"]
    assert {n.then_shape for n in found} == {("?", 4)}
    assert {n.cond_producer for n in found} == {"body input"}


def test_open_dims_of_a_body_have_no_names(tmp_path):
    """A parameter of a body may be another size in each trip."""
    maps = map_of("port_map", [(0, 0, ""), (1, 1, ""), (1, 2, "")])
    (found,) = read(outer("Loop", f"<body>{body(EDGES)}</body>", maps), tmp_path)
    assert found.place == "net/2:Loop.body#3"
    assert (found.status, found.cond_shape) == ("dispatched", ("?", 4))


def test_contradiction_in_a_body_that_may_never_run_is_no_error(tmp_path):
    text = outer("If", f"<then_body>{body(EDGES)}</then_body>", "")
    (found,) = read(
        text.replace('shape="?,4"', 'shape="3,4"', 2).replace("?,4", "5,4", 1), tmp_path
    )
    assert found.status == "dispatched" and "3 of cond and 5 of then" in found.reason
