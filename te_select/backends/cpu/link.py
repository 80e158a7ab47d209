"""What objects for CPUs are linked with: a stub in C that describes them, and the host half."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeAlias

from te_select.backends.c_compiler import CHECKS, HostHalf
from te_select.backends.static_code import ANY_SHAPES
from te_select.backends.stub import exported_functions, plain_function, shape_tables, signature
from te_select.base.levels import SHORT_ROW_BYTES
from te_select.operator import family
from te_select.operator.broadcast import MAX_RANK
from te_select.operator.stages import AS_IS, BITS, NUMBERS, SOURCES, Stage
from te_select.operator.workload import Workload
from te_select.runtime.c import FOLDER
from te_select.runtime.call.cpu.decisions import Decisions
from te_select.runtime.call.cpu.profile import DECISIONS
from te_select.schedules.cpu.config import BY_MACHINE, LONG_ROW_BYTES
from te_select.schedules.cpu.span import FLAGS


def _sources(*patterns: str) -> tuple[str, ...]:
    """Files of the host half, the same for the same sources."""
    found = (path for pattern in patterns for path in sorted(FOLDER.glob(pattern)))
    return tuple(path.relative_to(FOLDER).as_posix() for path in found)


_OF_WHERE = _sources("where/*.c", "onnxruntime/*.c")
_OF_MODEL = ("cpu/model_pool.c",)
CPU = HostHalf(
    (*CHECKS, *(each for each in _sources("cpu/*.c") if each not in _OF_MODEL)),
    # The library is never unloaded, because the threads of its pool wait inside its code.
    ("-pthread", "-ldl", "-Wl,-z,nodelete"),
    in_model=HostHalf(_OF_MODEL, ()),
)
# The host half of the library of `te_select.where`, whose kernels serve operands of any shapes.
FAMILY = HostHalf(
    (*CPU.sources, *_OF_WHERE),
    CPU.options,
    CPU.in_model,
    ("CreateEpFactories", "ReleaseEpFactory", "te_select_ort_calls", *ANY_SHAPES),
)


def _offsets(struct: str, names: Sequence[str]) -> dict[str, int]:
    """Where the fields of a C struct of int64 lie that are exactly these."""
    found = {f"offsetof({struct}, {name})": 8 * k for k, name in enumerate(names)}
    return {**found, f"sizeof({struct})": 8 * len(names)}


_KNOBS = tuple(each.name for each in fields(Decisions))
# Numbers that C and Python share: a library with others in its C half is not compiled.
_SHARED = {
    **{f"TE_SELECT_{name.upper()}": bit for name, bit in FLAGS.items()},
    **_offsets("te_select_knobs", _KNOBS),
    **_offsets("te_select_decisions", DECISIONS),
    "TE_SELECT_BY_MACHINE": BY_MACHINE,
    "TE_SELECT_MAX_DIMS": MAX_RANK,
}
_SHARED_BY_FAMILY = {
    "TE_SELECT_SHORT_ROW_BYTES": SHORT_ROW_BYTES,
    "TE_SELECT_LONG_ROW_BYTES": LONG_ROW_BYTES,
    "TE_SELECT_WHERE_RANK": MAX_RANK,
    "TE_SELECT_WHERE_MISSING_KERNEL": family.MISSING_KERNEL,
    "sizeof(te_select_where_kernels) / sizeof(void*)": len(family.PLACES),
    "TE_SELECT_KINDS": len(NUMBERS),
    "TE_SELECT_KIND_INT8": NUMBERS.index("int8"),
    "TE_SELECT_KIND_UINT8": NUMBERS.index("uint8"),
    "TE_SELECT_KIND_FLOAT16": NUMBERS.index("float16"),
    "TE_SELECT_KIND_COMPLEX64": NUMBERS.index("complex64"),
    "TE_SELECT_KIND_BITS": SOURCES.index(BITS),
    "TE_SELECT_SOURCES": len(SOURCES),
    "TE_SELECT_AS_IS": AS_IS,
}


@dataclass(frozen=True)
class Version:
    """A kernel's code for one level.

    Parameters
    ----------
    symbol
        The raw function in the level's object file:
        ``int32_t (void*, void*, void*, void*, int64_t..., int64_t flags, int64_t task, int64_t
        tasks)``. The parameters are cond, then, else_, out, the sizes of `Workload.dim_names` in
        that order, the flags that say what was decided for the call, and the share of the work.
    decisions
        The knobs that decide at a call.
    """

    symbol: str
    decisions: Decisions = field(default_factory=Decisions)


# Of each workload the code for every level of a library. The exported function has its name.
Entries: TypeAlias = Mapping[Workload, Sequence[Version]]
# Of each level, by its name, the features as /proc/cpuinfo spells them; the best is the last.
Levels: TypeAlias = Mapping[str, Sequence[str]]


def stub_source(
    entries: Entries,
    levels: Levels,
    c_functions: Mapping[Workload, str] = {},
    places: Mapping[Workload, str] | None = None,
    stages: Sequence[Stage] = (),
) -> str:
    """Write the C code that describes and exports kernels.

    Parameters
    ----------
    entries
        The kernels of one library.
    levels
        The levels that have code.
    c_functions
        The names of the plain C functions, for the kernels that have one.
    places
        For kernels of the family that serves operands of any shapes: the place of each in
        ``te_select_where_kernels``, such as ``"runs[2][7]"``. None if there are none.
    stages
        The stages of the family that have code, in a function `stage_symbol` of each level.

    Returns
    -------
    str
        For every kernel a constant description, calls of the raw functions, and the exported
        functions, in the C calling convention of tvm-ffi; then its plain C function.
    """
    names = sorted({len(workload.dim_names) for workload in entries})
    kernels = (
        _stub(i, workload, versions, c_functions.get(workload, ""))
        for i, (workload, versions) in enumerate(entries.items())
    )
    of_family, take_level = "", "NULL"
    if places is not None:
        of_family = _family(entries, levels, places, stages)
        take_level = "te_select_where_take_level"
    head = f'#include <stddef.h>\n#include "host_cpu.h"\n{_asserted(_SHARED)}'
    library = _library(levels, take_level)
    return "".join([head, *map(_run, names), *kernels, of_family, library])


def stage_symbol(stage: Stage, level: int) -> str:
    """The raw function of a stage, by the number of its level."""
    return f"te_select_stage_{stage.source}_to_{stage.target}_l{level}"


def _family(
    entries: Entries,
    levels: Levels,
    places: Mapping[Workload, str],
    stages: Sequence[Stage],
) -> str:
    """The function that puts the kernels of a family into the tables of ``where_library.c``."""
    functions, cases = [], []
    for k in range(len(levels)):
        filled = []
        for i, (workload, versions) in enumerate(entries.items()):
            if workload in places:
                functions.append(_where_run(f"where_{i}_{k}", workload, versions[k]))
                place = f"&kernels->{places[workload]}"
                filled.append(f"      te_select_put_kernel({place}, where_{i}_{k});")
        for i, stage in enumerate(stages):
            functions.append(_stage_run(f"stage_{i}_{k}", stage_symbol(stage, k)))
            filled.append(f"      te_select_put_kernel(&stages->{stage.place}, stage_{i}_{k});")
        cases.append("\n".join([f"    case {k}:", *filled, "      break;"]))
    text = "\n".join(cases)
    return f"""
#include "where_library.h"
#include "where_plan.h"
{_asserted(_SHARED_BY_FAMILY)}
{"".join(functions)}
void te_select_where_fill(te_select_where_kernels* kernels, te_select_where_stages* stages,
                          int32_t level) {{
  (void)kernels;
  (void)stages;
  switch (level) {{
{text}
  }}
}}
"""


def _asserted(numbers: Mapping[str, int]) -> str:
    """C code that holds the C half to numbers of ours."""
    return "".join(f'_Static_assert({c} == {n}, "in Python");\n' for c, n in numbers.items())


def _where_run(name: str, workload: Workload, version: Version) -> str:
    code = f"(te_select_code){version.symbol}"
    return f"""
static int32_t {name}(void* const* data, const int64_t* sizes, int64_t flags) {{
  return run_{len(workload.dim_names)}({code}, data, sizes, flags, 0, 1);
}}
"""


def _stage_run(name: str, symbol: str) -> str:
    return f"""
extern int32_t {symbol}(void* source, void* made, int64_t n, int64_t flags);
static int32_t {name}(void* const* data, const int64_t* sizes, int64_t flags) {{
  return {symbol}(data[0], data[1], sizes[0], flags);
}}
"""


def _library(levels: Levels, take_level: str) -> str:
    features = "\n".join(
        f"static const char* const features_{k}[] = {{"
        + "".join(f'"{feature}", ' for feature in needed)
        + "0};"
        for k, needed in enumerate(levels.values())
    )
    rows = ",\n    ".join(
        f'{{.name = "{_c_text(name)}", .features = features_{k}}}' for k, name in enumerate(levels)
    )
    return f"""
{features}
static const te_select_level levels[] = {{
    {rows}}};
const te_select_library te_select_this_library = {{
    .num_levels = {len(levels)}, .levels = levels, .take_level = {take_level}}};
"""


def _c_text(text: str) -> str:
    """A text, escaped for the inside of a C string."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _stub(i: int, workload: Workload, versions: Sequence[Version], c_function: str) -> str:
    names = len(workload.dim_names)
    declared = "".join(f"extern void {version.symbol}(void);\n" for version in versions)
    listed = ",\n    ".join(map(_version, versions))
    plain = plain_function(i, workload, c_function, "te_select_call_plain", streams=False)
    return f"""
{declared}static const te_select_version versions_{i}[] = {{
    {listed}}};
{shape_tables(i, workload)}
static const te_select_cpu_kernel kernel_{i} = {{
    .common = {signature(i, workload)},
    .run = run_{names}, .versions = versions_{i}}};
{exported_functions(i, workload, "te_select_call")}
{plain}"""


def _version(version: Version) -> str:
    told = vars(version.decisions).items()
    knobs = ", ".join(f".{name} = {int(value)}" for name, value in told)
    return f"{{.code = {version.symbol}, .knobs = {{{knobs}}}}}"


def _run(names: int) -> str:
    """Write the function that calls kernels with this number of named dims."""
    types = "void*, void*, void*, void*" + ", int64_t" * (names + 3)
    sizes = "".join(f", sizes[{k}]" for k in range(names))
    return f"""
static int32_t run_{names}(te_select_code code, void* const* data, const int64_t* sizes,
                           int64_t flags, int32_t task, int32_t tasks) {{
  (void)sizes;
  return ((int32_t (*)({types}))code)(data[0], data[1], data[2], data[3]{sizes}, flags, task,
                                      tasks);
}}
"""
