"""Writes graphs of oneDNN in its JSON form for tests, and reads them."""

import json

from te_select import read_model

OPEN = -(2**63)


def tensor(number, shape, dtype="f32"):
    return {"id": number, "dtype": dtype, "shape": shape, "stride": [], "layout_type": "strided"}


def op(kind, inputs, outputs, name="", **attrs):
    typed = {key: {"type": "string", "value": value} for key, value in attrs.items()}
    return {"kind": kind, "name": name, "attrs": typed, "inputs": inputs, "outputs": outputs}


def select(cond, then, else_, out=(OPEN,), dtype="f32", **attrs):
    inputs = [tensor(0, cond, "boolean"), tensor(1, then, dtype), tensor(2, else_, dtype)]
    return op("Select", inputs, [tensor(3, list(out), dtype)], "mask", **attrs)


def read(ops, folder):
    path = folder / "graph.json"
    path.write_text(json.dumps({"version": "3.9.0", "engine_kind": "cpu", "graph": ops}))
    return read_model(path)


def only(ops, folder):
    (found,) = read(ops, folder)
    return found
