"""The emitted C reads where the scheduled definition reads, in every access pattern."""

import ctypes
from itertools import product

import pytest
from tvm import s_tir

from te_select import Workload
from te_select.backends.cuda.lowering import lower
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.schedules.cuda import schedule as cuda
from te_select.schedules.cuda.span import prelude
from tests.support import tir_values
from tests.support.cuda_emulation import build

DTYPES = ("float32", "complex128")
POINTS = 64
STEPS = 70  # more than a row of either size
EXTENTS = (3, 37, 2)
NAMES = ("a", "b", "c")
SIZES = dict(zip(NAMES, (5, 2, 33), strict=True))


def shapes(dims):
    """Shapes of cond, then and else for every choice of which operand moves along which dims."""
    movers = [each for each in product((True, False), repeat=3) if any(each)]
    for choice in product(movers, repeat=len(dims)):
        yield tuple(
            tuple(dim if moves[k] else 1 for dim, moves in zip(dims, choice, strict=True))
            for k in range(3)
        )


def workloads(named, dtype, half):
    """A workload for every access pattern of up to two loops, and an eighth of those of three."""
    dims = NAMES if named else EXTENTS
    patterns = [
        {str(access_pattern(w)): w for w in _of_rank(dims[:rank], dtype)} for rank in (0, 1, 2, 3)
    ]
    few = patterns[0] | patterns[1] | patterns[2]
    eighth = 4 * named + 2 * DTYPES.index(dtype) + half
    three = [w for pattern, w in patterns[3].items() if pattern not in few]
    return [*few.values(), *three[eighth::8]]


def _of_rank(dims, dtype):
    return (Workload(*each, dtype, "multidirectional") for each in shapes(dims))


def scheduled(workload, pattern):
    sch = s_tir.Schedule(definition(workload))
    cuda.apply(sch, pattern, None, cuda.default_config(pattern, None))
    return sch.mod["main"]


def asking(function, names):
    """C++ of the kernel's loops, with a function that returns offsets from a flat index on."""
    loops = function.kernel.partition('extern "C"')[0]
    sizes = ", ".join(f"static_cast<te_select::u64>(sizes[{k}])" for k in range(names))
    stores = "".join(
        f"    *found++ = at.offset<te_select::{operand}>();\n"
        for operand in ("COND", "THEN", "ELSE")
    )
    return f"""{loops}
extern "C" void offsets_of_{function.symbol}(
    const int64_t* sizes, int64_t flat, int64_t steps, int64_t* found) {{
  const {function.symbol}_loops loops{{{sizes}}};
  {function.symbol}_loops::Position<te_select::u64> at(loops, flat);
  for (; steps > 0; --steps, at.step()) {{
{stores}  }}
}}
"""


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["float32", pytest.param("complex128", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "named",
    [pytest.param(False, id="ints", marks=pytest.mark.slow), pytest.param(True, id="names")],
)
def test_emitted_c_reads_where_the_scheduled_definition_reads(named, dtype, half, tmp_path):
    cases = {}
    text = prelude()
    for k, workload in enumerate(workloads(named, dtype, half)):
        pattern = access_pattern(workload)
        func = scheduled(workload, pattern)
        made = lower(func, f"kernel_{k}", workload.dim_names, pattern)
        text += asking(made, len(workload.dim_names))
        cases[made.symbol] = (workload, func)
    library = ctypes.CDLL(str(build(text, [], tmp_path)))
    for symbol, (workload, func) in cases.items():
        total = access_pattern(workload.bind(SIZES if named else {})).elements or 0
        sizes = (ctypes.c_int64 * 4)(*(SIZES[name] for name in workload.dim_names))
        ask = getattr(library, f"offsets_of_{symbol}")
        asked = 0
        for read in tir_values.offsets(func, SIZES, POINTS):
            steps = min(STEPS, total - read["out"])
            found = (ctypes.c_int64 * (3 * steps))()
            ask(sizes, ctypes.c_int64(read["out"]), ctypes.c_int64(steps), found)
            assert list(found[:3]) == [read[name] for name in ("cond", "then", "else")], workload
            asked += 1
        assert asked, workload
