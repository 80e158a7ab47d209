"""Writes files of OpenVINO IR for tests, and reads them."""

from te_select import read_model

AXIS = "auto_broadcast__auto_broadcast_axis"  # of a Select in the mode pdpd


def port(number, precision, dims):
    inside = "".join(f"<dim>{dim}</dim>" for dim in dims)
    said = f' precision="{precision}"' if precision else ""
    return f'<port id="{number}"{said}>{inside}</port>'


def layer(number, kind, inputs=(), outputs=(), name=None, extra="", of="opset1", **data):
    attributes = " ".join(f'{k.replace("__", ".")}="{v}"' for k, v in data.items())
    ins = "".join(port(i, *given) for i, given in enumerate(inputs))
    outs = "".join(port(len(inputs) + i, *given) for i, given in enumerate(outputs))
    return (
        f'<layer id="{number}" name="{name or kind.lower()}{"" if name else number}" type="{kind}" '
        f'version="{of}"><data {attributes}/>{extra}<input>{ins}</input>'
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
