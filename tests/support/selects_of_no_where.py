"""Functions of TIR with a Select that is no Where: the dlight rule leaves them to TVM."""

import tvm

_RUN = """
# from tvm.script import tirx as T
@T.prim_func(private=True, s_tir=True)
def where(
    c: T.Buffer((512,), "bool"), x: T.Buffer((512,), "float32"), out: T.Buffer((512,), "float32")
):
    for i in range(512):
        with T.sblock("T_where"):
            k = T.axis.spatial(512, i)
            out[k] = T.Select(c[k], x[k], x[k])
"""
_ROWS = """
# from tvm.script import tirx as T
@T.prim_func(private=True, s_tir=True)
def where(
    c: T.Buffer((64, 64), "bool"),
    x: T.Buffer((64, 64), "float32"),
    out: T.Buffer((64, 64), "float32"),
):
    for i, j in T.grid(64, 64):
        with T.sblock("T_where"):
            k, m = T.axis.remap("SS", [i, j])
            out[k, m] = T.Select(c[k, m], x[k, m], x[k, m])
"""
_STORE = "out[k] = T.Select"


def _before(line):
    return _STORE, f"{line}\n            {_STORE}"


_CHANGES = {
    "by sign": (('c: T.Buffer((512,), "bool")', 'y: T.Buffer((512,), "float32")'),
                ("c[k], x[k], x[k]", "T.float32(0) < x[k], x[k], y[k]")),
    "reversed out": ((_STORE, "out[511 - k] = T.Select"),),
    "of a part": (("x: T.Buffer((512,)", "x: T.Buffer((600,)"),),
    "of a range": (("range(512)", "T.serial(1, 512)"),),
    "half": (("range(512)", "range(256)"),),
    "guarded": (_before("T.where(i < 300)"),),
    "with a start": (_before("with T.init():\n                out[k] = T.float32(3)"),),
    "of out": (('x: T.Buffer((512,), "float32"), ', ""), ("x[k], x[k]", "out[k], out[k]")),
    "one after the other": (("spatial", "reduce"),),
    "of a view": (_before("T.match_buffer(x[k : k + 1], (1,), offset_factor=1)"),),
    "transposed": (("c[k, m]", "c[m, k]"),),
    "of a larger out": (("c: T.Buffer((64, 64)", "c: T.Buffer((64,)"), ("c[k, m]", "c[m]"),
                        ("x: T.Buffer((64, 64)", "x: T.Buffer((64,)"), ("x[k, m]", "x[m]")),
    "of wider rows": (("c: T.Buffer((64, 64)", "c: T.Buffer((64, 1)"), ("c[k, m]", "c[k, 0]"),
                      ("x: T.Buffer((64, 64)", "x: T.Buffer((1, 1)"), ("x[k, m]", "x[0, 0]")),
    "with gaps": (('"float32"),\n    out', '"float32", strides=(128, 1)),\n    out'),),
    "into gaps": (('"float32"),\n)', '"float32", strides=(128, 1)),\n)'),),
}  # fmt: skip


def _changed(changes):
    text = _RUN if changes[0][0] in _RUN else _ROWS
    for right, wrong in changes:
        assert right in text, right
        text = text.replace(right, wrong)
    return tvm.script.from_source(text)


WHERES = [tvm.script.from_source(text) for text in (_RUN, _ROWS)]
OTHERS = {name: _changed(changes) for name, changes in _CHANGES.items()}
