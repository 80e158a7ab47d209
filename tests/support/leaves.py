"""Scheduled functions whose leaf is almost a Select."""

from tvm import s_tir, te, tirx

from te_select.operator.access import access_pattern
from tests.support import flat

SIZE = 64
W = flat(SIZE)
PATTERN = access_pattern(W)


def right(cond, then, else_, i):
    """The value that the definition gives an element."""
    return tirx.Select(cond[i] != tirx.const(0, cond.dtype), then[i], else_[i])


def scheduled(rules, make=right, cond_dtype="uint8", dtype="uint32"):
    """Define ``out[i] = make(cond, then, else_, i)`` and apply a kind's schedule to it."""
    cond = te.placeholder((tirx.IntImm("int64", SIZE),), cond_dtype, "cond")
    then, else_ = (
        te.placeholder((tirx.IntImm("int64", SIZE),), dtype, name) for name in ("then", "else_")
    )
    then_b = te.compute(then.shape, lambda i: then[i], name="then_b")
    else_b = te.compute(else_.shape, lambda i: else_[i], name="else_b")
    out = te.compute(then.shape, lambda i: make(cond, then_b, else_b, i), name="out")
    sch = s_tir.Schedule(te.create_prim_func([cond, then, else_, out]))
    rules.apply(sch, PATTERN, None, rules.Config(**CONFIGS[rules.__name__]))
    return sch.mod["main"]


CONFIGS = {
    "te_select.schedules.cpu.schedule": {
        "vector_bytes": 32,
        "unroll": 1,
        "rows": False,
        "piece": 4096,
        "bytes_per_thread": 0,
        "stream_from": 0,
        "skip": 0,
    },
    "te_select.schedules.cuda.schedule": {
        "threads": 128,
        "vectors": 1,
        "stream": False,
        "skip": True,
        "max_blocks": 0,
    },
}
