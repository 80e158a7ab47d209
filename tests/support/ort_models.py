"""Models with Where for ONNX Runtime, and a library of kernels in C that is built in a second."""

import numpy as np

from tests.support.models import model, tensor

WHERE = ("c", "x", "y")


def library():
    """The library."""
    from te_select.backends.cpu import link
    from tests.support import c_half

    return c_half.built("where_in_c.c", link.FAMILY.sources, "-ldl", "-Wl,-z,nodelete")


def node(op, inputs, outputs, **attributes):
    """A node."""
    from onnx import helper

    return helper.make_node(op, inputs, outputs, **attributes)


def graph(nodes, inputs, out=None, **parts):
    """A model with the output ``o``, of an IR that every release of ONNX Runtime knows."""
    outputs = [out if out is not None else tensor("o", "float32", None)]
    return model(nodes, inputs, outputs=outputs, **{"ir_version": 8, **parts})


def one_where(dtype="float32", shapes=(("a", "n"),) * 3, **parts):
    """A model of one Where, of inputs c, x and y."""
    inputs = [
        tensor(name, of, shape)
        for name, of, shape in zip(WHERE, ("bool", dtype, dtype), shapes, strict=True)
    ]
    return graph([node("Where", WHERE, ["o"])], inputs, tensor("o", dtype, None), **parts)


def feeds(*shapes):
    """Random bits for c, x and y."""
    rng = np.random.default_rng(0)
    sides = [rng.integers(0, 2**32, shape, np.uint32).view("f4") for shape in shapes[1:]]
    return dict(zip(WHERE, (np.asarray(rng.random(shapes[0]) < 0.5), *sides), strict=True))


def session(proto, options):
    """A session of a model."""
    import onnxruntime

    options.log_severity_level = 4
    return onnxruntime.InferenceSession(proto.SerializeToString(), options)
