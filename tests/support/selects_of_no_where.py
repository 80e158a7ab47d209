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
    return f"{_STORE} => {line}\n            {_STORE}"


_CHANGES = {
    "by sign": 'c: T.Buffer((512,), "bool") => y: T.Buffer((512,), "float32"); '
    "c[k], x[k], x[k] => T.float32(0) < x[k], x[k], y[k]",
    "by the first byte": '"bool" => "int16"; (c[k] => (T.Cast("bool", c[k])',
    "by more than 1": '(c[k] => (T.int64(1) < T.Cast("int64", c[k])',
    "reversed out": "out[k] => out[511 - k]",
    "into the last but one": '"float32")\n) => "float32"), z: T.Buffer((512,), "float32")\n)',
    "with a buffer": 'for i in => z = T.sblock_alloc_buffer((4,), "float32")\n    for i in',
    "of a part": "x: T.Buffer((512,) => x: T.Buffer((600,)",
    "of one element": "x[k], x[k] => x[0], x[k]",
    "of a range": "range(512) => T.serial(1, 513)",
    "half": "range(512) => range(256)",
    "into half": "range(512) => range(256); spatial(512 => spatial(256",
    "each twice": "512, i) => 512, i // 2)",
    "all twice": "i in range(512) => i, j in T.grid(512, 2)",
    "in parallel": "range(512) => T.parallel(512)",
    "guarded": _before("T.where(i < 300)"),
    "with a start": _before("with T.init():\n                out[k] = T.float32(3)"),
    "of out": 'x: T.Buffer((512,), "float32"),  => ; x[k], x[k] => out[k], out[k]',
    "one after the other": "spatial => reduce",
    "of a view": _before("T.match_buffer(x[k : k + 1], (1,), offset_factor=1)"),
    "transposed": "c[k, m] => c[m, k]",
    "of a larger out": "c: T.Buffer((64, 64) => c: T.Buffer((64,); c[k, m] => c[m]; "
    "x: T.Buffer((64, 64) => x: T.Buffer((64,); x[k, m] => x[m]",
    "of wider rows": "c: T.Buffer((64, 64) => c: T.Buffer((64, 1); c[k, m] => c[k, 0]; "
    "x: T.Buffer((64, 64) => x: T.Buffer((1, 1); x[k, m] => x[0, 0]",
    "with gaps": '"float32"),\n    out => "float32", strides=(128, 1)),\n    out',
    "into gaps": '"float32"),\n) => "float32", strides=(128, 1)),\n)',
}
"""What stands there, and what takes its place."""


def _changed(changes):
    pairs = [each.split(" => ") for each in changes.split("; ")]
    text = _RUN if pairs[0][0] in _RUN else _ROWS
    for right, wrong in pairs:
        assert right in text, right
        text = text.replace(right, wrong)
    return tvm.script.from_source(text)


WHERES = [tvm.script.from_source(text) for text in (_RUN, _ROWS)]
OTHERS = {name: _changed(changes) for name, changes in _CHANGES.items()}
