"""The dlight rule for Select: merged loops, pieces in parallel, and a span for what is left."""

from dataclasses import replace

from tvm import s_tir, tirx
from tvm.s_tir.dlight.base import ScheduleRule
from tvm.target import Target

from te_select.dlight.legalized import legalized
from te_select.dlight.spans import with_span
from te_select.errors import SelectError
from te_select.operator.access import AccessPattern, access_pattern
from te_select.schedules.cpu import isa, schedule
from te_select.schedules.cpu.config import Config, rows_may_be_leaf, share_vectors
from te_select.schedules.cpu.defaults import default_config
from te_select.schedules.cpu.span import BACKWARDS, SKIP, STREAM

STREAM_FROM = 1 << 26  # bytes of out; more than the last-level cache that most cores have for them


class Select(ScheduleRule):  # type: ignore[misc]  # TVM is untyped
    """Schedules ``out[i] = cond[i] ? then[i] : else_[i]`` with broadcast operands.

    The function is the one that ``relax.transform.LegalizeOps`` makes of a where: one block, which
    is exactly this Select.

    Schedule strategy:
      1. Neighbouring loops with the same broadcast operands are fused.
      2. The innermost loop is cut into pieces; pieces and outer loops are one parallel loop.
      3. The innermost loop, or the two innermost ones if rows share vectors, becomes a span, which
         is vectors at any address. ``vectorize`` is not used: it needs a loop without a tail.

    Large outputs are stored past the cache. What cond does not select is not read, in whole blocks.

    Note: rows of 128 to 1023 bytes are left to TVM's default. The span needs two vectors more for
    each row, and gained less than the second thread that it used
    (docs/measurements.md, "Inside TVM").
    """

    def apply(self, func: tirx.PrimFunc, target: Target, tunable: bool) -> s_tir.Schedule | None:
        """Schedule a function.

        Parameters
        ----------
        func
            The function.
        target
            The target, a CPU.
        tunable
            Not used: there are no tunable instructions.

        Returns
        -------
        tvm.s_tir.Schedule or None
            None if the function is no Select, the target is no CPU, or TVM's default is better.
        """
        del tunable
        if not isinstance(func, tirx.PrimFunc) or not isa.knows(target):
            return None
        try:
            found = legalized(func)
        except SelectError:  # of shapes or types that no schedule of ours has
            return None
        if found is None:
            return None
        pattern = access_pattern(found.workload)
        if pattern.elements == 0 or _is_better_left(pattern):
            return None
        config = _config(pattern, target)
        sch = s_tir.Schedule(func)
        block = sch.get_sblock(found.block.name_hint)
        schedule.apply_to(sch, block, pattern, target, config)
        span = schedule.span_of(pattern, config, target)
        return s_tir.Schedule(with_span(sch.mod["main"], span, _flags(pattern)))


def _is_better_left(pattern: AccessPattern) -> bool:
    """Whether rows are of medium length."""
    known = rows_may_be_leaf(pattern) and pattern.loops[-1].extent is not None
    return known and not share_vectors(pattern)


def _config(pattern: AccessPattern, target: Target) -> Config:
    """The default config; rows whose length has a name are taken for long ones."""
    config = default_config(pattern, target)
    named = pattern.loops and pattern.loops[-1].extent is None
    return replace(config, rows=False) if named else config


def _flags(pattern: AccessPattern) -> int:
    """What the host half of a library tells a span at each call."""
    streams = (pattern.out_bytes or 0) >= STREAM_FROM
    return SKIP | BACKWARDS | (STREAM if streams else 0)
