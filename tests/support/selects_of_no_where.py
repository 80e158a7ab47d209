"""Functions of TIR with a Select that is no Where: the dlight rule leaves them to TVM."""

from tvm.script import tirx as T


@T.prim_func(private=True, s_tir=True)
def by_sign(
    x: T.Buffer((512,), "float32"), y: T.Buffer((512,), "float32"), out: T.Buffer((512,), "float32")
):
    for i in range(512):
        with T.sblock("T_where"):
            k = T.axis.spatial(512, i)
            out[k] = T.Select(T.float32(0) < x[k], x[k], y[k])


@T.prim_func(private=True, s_tir=True)
def transposed(
    c: T.Buffer((16, 16), "bool"),
    x: T.Buffer((16, 16), "float32"),
    out: T.Buffer((16, 16), "float32"),
):
    for i, j in T.grid(16, 16):
        with T.sblock("T_where"):
            k, m = T.axis.remap("SS", [i, j])
            out[k, m] = T.Select(c[m, k], x[k, m], x[k, m])


@T.prim_func(private=True, s_tir=True)
def reversed_out(
    c: T.Buffer((512,), "bool"), x: T.Buffer((512,), "float32"), out: T.Buffer((512,), "float32")
):
    for i in range(512):
        with T.sblock("T_where"):
            k = T.axis.spatial(512, i)
            out[511 - k] = T.Select(c[k], x[k], x[k])


@T.prim_func(private=True, s_tir=True)
def of_a_part(
    c: T.Buffer((512,), "bool"), x: T.Buffer((600,), "float32"), out: T.Buffer((512,), "float32")
):
    for i in range(512):
        with T.sblock("T_where"):
            k = T.axis.spatial(512, i)
            out[k] = T.Select(c[k], x[k], x[k])


@T.prim_func(private=True, s_tir=True)
def of_a_range(
    c: T.Buffer((512,), "bool"), x: T.Buffer((512,), "float32"), out: T.Buffer((512,), "float32")
):
    for i in T.serial(1, 512):
        with T.sblock("T_where"):
            k = T.axis.spatial(512, i)
            out[k] = T.Select(c[k], x[k], x[k])


@T.prim_func(private=True, s_tir=True)
def half(
    c: T.Buffer((512,), "bool"), x: T.Buffer((512,), "float32"), out: T.Buffer((512,), "float32")
):
    for i in range(256):
        with T.sblock("T_where"):
            k = T.axis.spatial(512, i)
            out[k] = T.Select(c[k], x[k], x[k])


@T.prim_func(private=True, s_tir=True)
def guarded(
    c: T.Buffer((512,), "bool"), x: T.Buffer((512,), "float32"), out: T.Buffer((512,), "float32")
):
    for i in range(512):
        with T.sblock("T_where"):
            k = T.axis.spatial(512, i)
            T.where(i < 300)
            out[k] = T.Select(c[k], x[k], x[k])


@T.prim_func(private=True, s_tir=True)
def of_a_larger_out(
    c: T.Buffer((64,), "bool"), x: T.Buffer((64,), "float32"), out: T.Buffer((32, 64), "float32")
):
    for i, j in T.grid(32, 64):
        with T.sblock("T_where"):
            k, m = T.axis.remap("SS", [i, j])
            out[k, m] = T.Select(c[m], x[m], x[m])


@T.prim_func(private=True, s_tir=True)
def of_wider_rows(
    c: T.Buffer((32, 1), "bool"), x: T.Buffer((1, 1), "float32"), out: T.Buffer((32, 64), "float32")
):
    for i, j in T.grid(32, 64):
        with T.sblock("T_where"):
            k, m = T.axis.remap("SS", [i, j])
            out[k, m] = T.Select(c[k, 0], x[0, 0], x[0, 0])


@T.prim_func(private=True, s_tir=True)
def with_gaps(
    c: T.Buffer((64, 64), "bool"),
    x: T.Buffer((64, 64), "float32", strides=(128, 1)),
    out: T.Buffer((64, 64), "float32"),
):
    for i, j in T.grid(64, 64):
        with T.sblock("T_where"):
            k, m = T.axis.remap("SS", [i, j])
            out[k, m] = T.Select(c[k, m], x[k, m], x[k, m])


@T.prim_func(private=True, s_tir=True)
def into_gaps(
    c: T.Buffer((64, 64), "bool"),
    x: T.Buffer((64, 64), "float32"),
    out: T.Buffer((64, 64), "float32", strides=(128, 1)),
):
    for i, j in T.grid(64, 64):
        with T.sblock("T_where"):
            k, m = T.axis.remap("SS", [i, j])
            out[k, m] = T.Select(c[k, m], x[k, m], x[k, m])


@T.prim_func(private=True, s_tir=True)
def with_a_start(
    c: T.Buffer((512,), "bool"), x: T.Buffer((512,), "float32"), out: T.Buffer((512,), "float32")
):
    for i in range(512):
        with T.sblock("T_where"):
            k = T.axis.spatial(512, i)
            with T.init():
                out[k] = T.float32(3)
            out[k] = T.Select(c[k], x[k], x[k])


@T.prim_func(private=True, s_tir=True)
def of_out(c: T.Buffer((512,), "bool"), out: T.Buffer((512,), "float32")):
    for i in range(512):
        with T.sblock("T_where"):
            k = T.axis.spatial(512, i)
            out[k] = T.Select(c[k], out[k], out[k])


@T.prim_func(private=True, s_tir=True)
def one_after_the_other(
    c: T.Buffer((512,), "bool"), x: T.Buffer((512,), "float32"), out: T.Buffer((512,), "float32")
):
    for i in range(512):
        with T.sblock("T_where"):
            k = T.axis.reduce(512, i)
            out[k] = T.Select(c[k], x[k], x[k])


@T.prim_func(private=True, s_tir=True)
def of_a_view(
    c: T.Buffer((512,), "bool"), x: T.Buffer((512,), "float32"), out: T.Buffer((512,), "float32")
):
    for i in range(512):
        with T.sblock("T_where"):
            k = T.axis.spatial(512, i)
            T.match_buffer(x[k : k + 1], (1,), offset_factor=1)
            out[k] = T.Select(c[k], x[k], x[k])
