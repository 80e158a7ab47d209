"""Bodies of If, Loop and TensorIterator: the places and shapes of their Selects."""

import pytest

from tests.support.openvino_ir import edge, layer, net, parameter, read

pytest.importorskip("defusedxml")


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
    (found,) = read(text.replace('shape="?,4"', 'shape="3,4"', 2), tmp_path)
    assert found.status == "dispatched"
