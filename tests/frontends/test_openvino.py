import sys

import pytest

from te_select import ModelError, ToolchainError, Workload, read_model

pytest.importorskip("defusedxml")


def port(number, precision, dims):
    inside = "".join(f"<dim>{dim}</dim>" for dim in dims)
    said = f' precision="{precision}"' if precision else ""
    return f'<port id="{number}"{said}>{inside}</port>'


def layer(number, kind, inputs=(), outputs=(), name=None, extra="", **data):
    attributes = " ".join(f'{k.replace("__", ".")}="{v}"' for k, v in data.items())
    ins = "".join(port(i, *given) for i, given in enumerate(inputs))
    outs = "".join(port(len(inputs) + i, *given) for i, given in enumerate(outputs))
    return (
        f'<layer id="{number}" name="{name or kind.lower()}{"" if name else number}" type="{kind}" '
        f'version="opset1"><data {attributes}/>{extra}<input>{ins}</input>'
        f"<output>{outs}</output></layer>"
    )


def parameter(number, precision, shape, name=None):
    dims = [] if shape in ("", "...") else shape.split(",")
    known = [dim if dim.isdecimal() else -1 for dim in dims]
    element = {"BOOL": "boolean", "FP32": "f32", "I64": "i64"}.get(precision, precision.lower())
    return layer(
        number,
        "Parameter",
        outputs=[(precision, known)],
        name=name,
        shape=shape,
        element_type=element,
    )


def edge(source, to):
    return (
        f'<edge from-layer="{source[0]}" from-port="{source[1]}" '
        f'to-layer="{to[0]}" to-port="{to[1]}"/>'
    )


def net(layers, edges):
    joined = "".join(edge(*pair) for pair in edges)
    return (
        '<?xml version="1.0"?><net name="n" version="11"><layers>'
        + "".join(layers)
        + f"</layers><edges>{joined}</edges></net>"
    )


def select(cond, then, else_, dtype="FP32", precisions=True, **data):
    """A file with one Select of three parameters, which is layer 3."""
    given = (("BOOL", cond), (dtype, then), (dtype, else_))
    layers = [parameter(i, precision, shape) for i, (precision, shape) in enumerate(given)]
    ins = [
        (
            precision if precisions else "",
            [d if d.isdecimal() else -1 for d in shape.split(",")] if shape.strip(".") else [],
        )
        for precision, shape in given
    ]
    layers.append(layer(3, "Select", ins, [(dtype if precisions else "", [])], **data))
    return net(layers, [((i, 0), (3, i)) for i in range(3)])


def read(text, folder):
    path = folder / "model.xml"
    path.write_text(text)
    return read_model(path)


def only(text, folder):
    (found,) = read(text, folder)
    return found


def test_select_is_read_with_its_place_and_producer(tmp_path):
    found = only(select("1,4", "2,4", ""), tmp_path)
    assert found.workload == Workload.openvino_select((1, 4), (2, 4), ())
    assert (found.place, found.op, found.name) == ("net#3", "Select-1", "select3")
    assert (found.status, found.cond_producer) == ("compiled", "graph input")


def test_numpy_mode_is_what_openvino_runs(tmp_path):
    found = only(select("5,4", "1,4", "4", auto_broadcast="numpy"), tmp_path)
    assert found.workload is not None
    assert found.workload.auto_broadcast == "multidirectional"
    assert found.out_shape == (5, 4)


def test_none_wants_equal_shapes(tmp_path):
    found = only(select("?,4", "?,4", "?,4", auto_broadcast="none"), tmp_path)
    assert found.workload is not None
    assert found.workload.auto_broadcast == "none"
    assert found.cond_shape == found.then_shape == found.else_shape
    with pytest.raises(ModelError, match="net#3"):
        read(select("4", "1,4", "4", auto_broadcast="none"), tmp_path)


@pytest.mark.parametrize("name", ["auto_broadcast__auto_broadcast_axis", "auto_broadcast_axis"])
def test_pdpd_has_an_axis(tmp_path, name):
    text = select("3", "2,3,4", "3,4", auto_broadcast="pdpd", **{name: "1"})
    found = only(text, tmp_path)
    assert found.workload == Workload.openvino_select((3,), (2, 3, 4), (3, 4), "float32", "pdpd", 1)


def test_intervals_and_open_dims_are_names_that_say_where_they_come_from(tmp_path):
    found = only(select("1..8,?", "", ""), tmp_path)
    assert found.status == "compiled"
    assert found.cond_shape == ("parameter0_0", "parameter0_1")
    assert found.dims["parameter0_0"] == "dim 0 of Parameter 'parameter0', 1..8"


def test_open_dims_of_two_parameters_are_not_taken_for_equal(tmp_path):
    assert only(select("?,4", "?,4", ""), tmp_path).status == "dispatched"


def test_rank_that_is_not_known_is_dispatched(tmp_path):
    found = only(select("...", "2", ""), tmp_path)
    assert (found.status, found.cond_shape, found.else_shape) == ("dispatched", None, ())


def test_missing_precisions_are_followed_along_the_edges(tmp_path):
    assert only(select("4", "4", "", precisions=False), tmp_path).dtype == "float32"


@pytest.mark.parametrize("precision", ["STRING", "I4", "U4", "NF4", "U1"])
def test_strings_and_parts_of_bytes_are_refused(tmp_path, precision):
    assert only(select("4", "4", "", precision), tmp_path).status == "refused"


def test_equal_dims_are_followed_through_elementwise_layers(tmp_path):
    """IsNaN of a tensor is as large as the tensor, for any size."""
    layers = [
        parameter(0, "FP32", "?,?"),
        layer(1, "IsNaN", [("FP32", [-1, -1])], [("BOOL", [-1, -1])]),
        layer(2, "Const", outputs=[("FP32", [])], element_type="f32", shape="", offset="0"),
        layer(
            3,
            "Select",
            [("BOOL", [-1, -1]), ("FP32", []), ("FP32", [-1, -1])],
            [("FP32", [-1, -1])],
        ),
    ]
    edges = [((0, 0), (1, 0)), ((1, 1), (3, 0)), ((2, 0), (3, 1)), ((0, 0), (3, 2))]
    found = only(net(layers, edges), tmp_path)
    assert (found.status, found.cond_producer) == ("compiled", "IsNaN")
    assert found.cond_shape == found.else_shape


def test_output_without_dims_is_no_scalar_where_its_rank_may_be_open(tmp_path):
    layers = [
        parameter(0, "BOOL", "4"),
        parameter(1, "FP32", "?"),
        parameter(2, "I64", "?"),
        layer(4, "Reshape", [("FP32", [-1]), ("I64", [-1])], [("FP32", [])]),
        layer(3, "Select", [("BOOL", [4]), ("FP32", []), ("FP32", [])], [("FP32", [])]),
    ]
    edges = [
        ((1, 0), (4, 0)),
        ((2, 0), (4, 1)),
        ((0, 0), (3, 0)),
        ((4, 2), (3, 1)),
        ((4, 2), (3, 2)),
    ]
    assert only(net(layers, edges), tmp_path).status == "dispatched"


@pytest.mark.parametrize(
    ("constants", "status"), [((), "dispatched"), ((2,), "dispatched"), ((2, 6), "compiled")]
)
def test_output_without_dims_is_a_scalar_where_all_that_decides_on_its_rank_is_constant(
    tmp_path, constants, status
):
    def given(number):
        if number not in constants:
            return parameter(number, "I64", "1")
        return layer(number, "Const", outputs=[("I64", [1])], element_type="i64", shape="1")

    ports = [("FP32", [4]), ("I64", [1]), ("I64", [1])]
    layers = [
        *(parameter(0, "BOOL", "4"), parameter(1, "FP32", "4"), given(2), given(6)),
        layer(4, "StridedSlice", ports, [("FP32", [])]),
        layer(3, "Select", [("BOOL", [4]), ("FP32", []), ("FP32", [])], [("FP32", [])]),
    ]
    slice_edges = [((1, 0), (4, 0)), ((2, 0), (4, 1)), ((6, 0), (4, 2))]
    edges = [*slice_edges, ((0, 0), (3, 0)), ((4, 3), (3, 1)), ((4, 3), (3, 2))]
    assert only(net(layers, edges), tmp_path).status == status


@pytest.mark.parametrize("said", ["true", "True", "1"])
def test_transposed_matrix_is_multiplied_whatever_the_spelling(tmp_path, said):
    layers = [
        *(parameter(0, "BOOL", "?,?"), parameter(1, "FP32", "3,?"), parameter(2, "FP32", "?,3")),
        layer(
            4,
            "MatMul",
            [("FP32", [3, -1]), ("FP32", [-1, 3])],
            [("FP32", [-1, -1])],
            transpose_a=said,
            transpose_b=said,
        ),
        layer(5, "IsNaN", [("FP32", [-1, -1])], [("BOOL", [-1, -1])]),
        layer(
            3,
            "Select",
            [("BOOL", [-1, -1]), ("FP32", [-1, -1]), ("FP32", [-1, -1])],
            [("FP32", [-1, -1])],
        ),
    ]
    edges = [
        *(((1, 0), (4, 0)), ((2, 0), (4, 1)), ((4, 2), (5, 0))),
        *(((5, 1), (3, 0)), ((4, 2), (3, 1)), ((4, 2), (3, 2))),
    ]
    found = only(net(layers, edges), tmp_path)
    assert found.then_shape == ("parameter1_1", "parameter2_0")


@pytest.mark.parametrize("between", [0, 1, 3])
def test_shape_is_followed_through_arithmetic_of_ints(tmp_path, between):
    """From a Select, by any number of layers, to where a shape is read."""
    vector = ("I64", [3])
    layers = [
        *(parameter(0, "BOOL", "3"), parameter(1, "I64", "3"), parameter(2, "FP32", "?")),
        layer(3, "Select", [("BOOL", [3]), vector, vector], [vector]),
        *(layer(10 + k, "Add", [vector, vector], [vector]) for k in range(between)),
        layer(4, "Reshape", [("FP32", [-1]), vector], [("FP32", [-1, -1, -1])]),
    ]
    edges = [((0, 0), (3, 0)), ((1, 0), (3, 1)), ((1, 0), (3, 2)), ((2, 0), (4, 0))]
    last = (3, 3)
    for k in range(between):
        edges += [(last, (10 + k, 0)), ((1, 0), (10 + k, 1))]
        last = (10 + k, 2)
    assert only(net(layers, [*edges, (last, (4, 1))]), tmp_path).status == "shape"


def test_arithmetic_of_shapes_is_not_built(tmp_path):
    layers = [
        parameter(0, "FP32", "?,1,4"),
        layer(1, "ShapeOf", [("FP32", [-1, 1, 4])], [("I64", [3])]),
        layer(2, "Const", outputs=[("I64", [3])], element_type="i64", shape="3", offset="0"),
        layer(4, "Equal", [("I64", [3]), ("I64", [3])], [("BOOL", [3])]),
        layer(3, "Select", [("BOOL", [3]), ("I64", [3]), ("I64", [3])], [("I64", [3])]),
        layer(5, "Broadcast", [("FP32", [-1, 1, 4]), ("I64", [3])], [("FP32", [-1, -1, -1])]),
    ]
    edges = [
        ((0, 0), (1, 0)),
        ((1, 1), (4, 0)),
        ((2, 0), (4, 1)),
        ((4, 2), (3, 0)),
        ((1, 1), (3, 1)),
        ((2, 0), (3, 2)),
        ((0, 0), (5, 0)),
        ((3, 3), (5, 1)),
    ]
    assert only(net(layers, edges), tmp_path).status == "shape"


def test_constants_are_folded(tmp_path):
    element = {0: "BOOL", 1: "FP32", 2: "FP32"}
    layers = [layer(i, "Const", outputs=[(p, [2])], shape="2") for i, p in element.items()]
    layers.append(layer(3, "Select", [(p, [2]) for p in element.values()], [("FP32", [2])]))
    found = only(net(layers, [((i, 0), (3, i)) for i in range(3)]), tmp_path)
    assert (found.status, found.cond_producer) == ("folded", "initializer")


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
    assert {n.status for n in found} == {"compiled"}
    assert {n.cond_producer for n in found} == {"body input"}


def test_state_and_slices_of_a_loop_are_sizes_of_their_own(tmp_path):
    bodies = f"<body>{body(EDGES)}</body>"
    back = '<back_edges><edge from-layer="3" to-layer="2"/></back_edges>'
    whole = map_of("port_map", [(0, 0, ""), (1, 1, ""), (1, 2, "")])
    (found,) = read(outer("Loop", bodies, whole, back), tmp_path)
    assert found.cond_shape == found.then_shape != found.else_shape
    sliced = map_of("port_map", [(0, 0, ""), (1, 1, ' axis="0"'), (1, 2, "")])
    (found,) = read(outer("TensorIterator", bodies, sliced), tmp_path)
    assert found.cond_shape == found.else_shape != found.then_shape
    assert found.place == "net/2:TensorIterator.body#3"


def test_missing_package_is_named_with_what_brings_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "defusedxml", None)
    monkeypatch.setitem(sys.modules, "defusedxml.sax", None)
    with pytest.raises(ToolchainError, match=r"te-select\[models\]"):
        read(select("4", "4", ""), tmp_path)


# Bad input

ENTITY = '<!DOCTYPE net [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><net name="&b;"/>'
OUTSIDE = '<!DOCTYPE net [<!ENTITY a SYSTEM "file:///etc/hostname">]><net>&a;</net>'
GOOD = select("4", "4", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no OpenVINO IR"),
        (GOOD[: len(GOOD) // 2], "no OpenVINO IR"),
        ("<html></html>", "expected an OpenVINO IR"),
        (ENTITY, "document type or entities"),
        (OUTSIDE, "document type or entities"),
        ("<net>" + "<a>" * 5000, "deep"),
        (GOOD.replace('<layer id="1"', '<layer id="0"'), "two layers have the id"),
        (GOOD.replace('from-layer="1"', 'from-layer="9"'), "'9', which is not there"),
        (GOOD.replace(edge((1, 0), (3, 1)), edge((1, 7), (3, 1))), "which has none"),
        (GOOD.replace('to-port="2"', 'to-port="8"'), "no edge leads to port 2"),
        (GOOD.replace("<dim>4</dim>", "<dim>x</dim>"), "no int"),
        (
            net(
                [parameter(0, "FP32", "?"), layer(1, "Abs", [("FP32", [-1])], [("FP32", [-2])])],
                [((0, 0), (1, 0))],
            ),
            "has the dims [-2]",
        ),
        (GOOD.replace('shape="4"', 'shape="4;5"'), "expected a size"),
        (select("4", "5", ""), "do not broadcast"),
        (select("4", "4", "", auto_broadcast="explicit"), "expected none, numpy or pdpd"),
        (select("4", "4", "4", auto_broadcast="pdpd", axis="one"), "expected an int"),
        (select("4", "4", "").replace("BOOL", "FP32").replace("boolean", "f32"), "expected bool"),
        (GOOD.replace("<dim>4</dim></port><p", "<dim>5</dim></port><p", 1), "expected the same"),
    ],
)  # fmt: skip
def test_bad_file_is_one_clear_line(tmp_path, text, said):
    with pytest.raises(ModelError) as caught:
        read(text, tmp_path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_cycle(tmp_path):
    layers = [layer(i, "LogicalNot", [("BOOL", [4])], [("BOOL", [4])]) for i in (0, 1)]
    with pytest.raises(ModelError, match="cycle"):
        read(net(layers, [((0, 1), (1, 0)), ((1, 1), (0, 0))]), tmp_path)


def test_file_without_a_select_has_no_nodes(tmp_path):
    assert read(net([parameter(0, "FP32", "4")], []), tmp_path) == []
