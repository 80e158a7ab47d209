"""Models that TVM compiles, with our kernels and without, in turns.

Run ``TVM_NUM_THREADS=2 python benchmarks/relax.py`` on an idle machine, with as many threads as it
has cores. TVM's own choice is half of them. Each figure is the median speed-up over the first way.
"""

import argparse
import fnmatch
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tvm
from tvm import relax, s_tir, tirx
from tvm.s_tir import dlight

import te_select.dlight
import te_select.relax
from te_select.backends.targets import resolve
from te_select.timing.rounds import PAUSE, take_turns

HERE = resolve("native")
MODELS: dict[str, tuple[Any, ...]] = {  # shapes of cond, then and else
    "where of 16 M elements": ((1 << 24,),) * 3,
    "mask over heads": ((1, 1, 1024, 1024), (4, 12, 1024, 1024), ()),
    "rows of 63": ((1 << 18, 1), (1 << 18, 63), (1 << 18, 63)),
    "rows of 3": ((1 << 22, 1), (1 << 22, 3), (1 << 22, 3)),
}
ATTENTION = ((1, 1, 512, 512), (1, 8, 512, 64), (1, 8, 64, 512))


def module(shapes: tuple[Any, ...], build: Callable[..., Any] = relax.op.where) -> Any:
    """A module of one function of cond, then and else."""
    types = ("bool", "float32", "float32")
    given = [
        relax.Var(name, relax.TensorType(shape, dtype))
        for name, shape, dtype in zip("cxy", shapes, types, strict=True)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        with builder.dataflow():
            out = builder.emit_output(build(*given))
        builder.emit_func_output(out)
    return builder.get()


def attention(cond: Any, query: Any, key: Any) -> Any:
    """Attention with its mask: scores, mask, softmax, and a product again."""
    scores = relax.op.matmul(query, key)
    masked = relax.op.where(cond, scores, relax.const(-1e9, "float32"))
    return relax.op.matmul(relax.op.nn.softmax(masked), query)


def chain(_cond: Any, x: Any, _y: Any) -> Any:
    """Some operators that TVM makes one loop of."""
    leaky = relax.op.where(relax.op.greater(x, relax.const(0.0)), x, x * relax.const(0.01))
    return leaky * relax.const(2.0) + relax.const(1.0)


def between_loops(cond: Any, x: Any, y: Any) -> Any:
    """A where between parallel loops of TVM."""
    return relax.op.exp(relax.op.where(cond, relax.op.negative(x), y))


class Parallel(dlight.base.ScheduleRule):  # type: ignore[misc]  # TVM is untyped
    """A parallel, vectorized loop for operators of one element each."""

    def apply(self, func: tirx.PrimFunc, _target: Any, _tunable: bool) -> Any:
        """Schedule a function of one block."""
        sch = s_tir.Schedule(func)
        blocks = sch.get_child_blocks(sch.get_sblock("root"))
        for block in blocks[:-1]:
            sch.compute_inline(block)
        outer, inner = sch.split(sch.fuse(*sch.get_loops(blocks[-1])), [None, 16])
        sch.parallel(outer)
        sch.vectorize(inner)
        return sch


def compiled(mod: Any, *passes: Any) -> Callable[..., Any]:
    """The function of a module after passes."""
    with HERE.tvm:
        made = tvm.transform.Sequential(passes)(mod)
    function: Callable[..., Any] = relax.VirtualMachine(tvm.compile(made, HERE.tvm), tvm.cpu())[
        "main"
    ]
    return function


def show(name: str, shapes: tuple[Any, ...], ways: dict[str, Any], rounds: int) -> None:
    """Check that all ways give the same bits, time them in turns, and print the ratios."""
    rng = np.random.default_rng(0)
    cond = np.asarray(rng.random(shapes[0]) < 0.5)  # noqa: PLR2004 - half of them
    floats = [np.asarray(rng.standard_normal(shape, np.float32)) for shape in shapes[1:]]
    given = [tvm.runtime.tensor(each) for each in (cond, *floats)]
    results = {way: call(*given).numpy().tobytes() for way, call in ways.items()}
    own, *_ = ways
    differ = [f"{way} differs" for way in ways if results[way] != results[own]]
    calls = {way: functools.partial(call, *given) for way, call in ways.items()}
    timed = take_turns(calls, rounds, PAUSE)
    ratios = [f"{way} {timed[way].ratio(timed[own]):.2f}" for way in ways if way != own]
    print(f"{name:40}{own} {timed[own].median * 1e3:.3g} ms;", *ratios, *differ, flush=True)


def contests() -> Iterator[tuple[str, tuple[Any, ...], Any, dict[str, tuple[Any, ...]]]]:
    """Name, shapes, module, and the passes of each way."""
    early = te_select.relax.UseSelect(HERE.tvm)
    late = te_select.relax.UseUnfusedSelect(HERE.tvm)
    legalize = relax.transform.LegalizeOps()
    zero = relax.get_pipeline("zero")
    rule = dlight.ApplyDefaultSchedule(te_select.dlight.Select())
    parallel = dlight.ApplyDefaultSchedule(Parallel())
    for name, shapes in MODELS.items():
        ways = {"TVM": (), "UseSelect": (early,), "dlight": (legalize, rule)}
        yield name, shapes, module(shapes), ways
    passes = relax.pipeline.legalize_passes(HERE.tvm)
    for name, own, ours in (
        ("default", (), (early,)),
        ("zero", (zero,), (zero, late)),
        ("legalize_passes", passes, (*passes, late)),
    ):
        ways = {"TVM": own, "te-select": ours}
        yield f"attention, {name}", ATTENTION, module(ATTENTION, attention), ways
    shapes = MODELS["where of 16 M elements"]
    ways = {"fused": (zero, parallel), "te-select": (zero, late, parallel)}
    yield "chain", shapes, module(shapes, chain), ways
    for size in (1 << 17, 1 << 20, 1 << 24):
        mod = module(((size,),) * 3, between_loops)
        ways = {"dlight": (legalize, rule, parallel), "UseSelect": (early, legalize, parallel)}
        yield f"between loops, {size} elements", ((size,),) * 3, mod, ways


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="*", help="names of models, with * for any text")
    args = parser.parse_args()
    for name, shapes, mod, ways in contests():
        if fnmatch.fnmatchcase(name, args.only):
            calls = {way: compiled(mod, *passes) for way, passes in ways.items()}
            show(name, shapes, calls, args.rounds)


if __name__ == "__main__":
    main()
