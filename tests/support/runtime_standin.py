"""Kernels in plain C instead of TVM's, so that the runtime half is tested alone."""

import platform
import subprocess
from functools import cache

import numpy as np

from te_select.backends.c_compiler import link_stub
from te_select.backends.cpu import link
from te_select.backends.programs import c_compiler
from te_select.runtime.artifact.fields import Choice
from te_select.runtime.artifact.manifest import KernelRecord, Manifest, c_name
from te_select.runtime.call import loading
from te_select.runtime.call.cpu.decisions import Decisions
from te_select.runtime.call.kernel import Kernel
from tests.support import new_folder

ARGS = np.array([1, 0] * 4, bool), np.ones(8, "f4"), np.zeros(8, "f4")
"""Operands of eight elements each: cond is what is selected."""
HERE = {"kind": "cpu", "architecture": platform.machine()}
_HEAD = "#include <stdint.h>\n#include <string.h>\n"

_KERNEL = """
struct job_{i} {{ char *c, *t, *e, *o; int64_t total; int64_t dim[{rank}], s[3][{rank}]; }};
int32_t te_select_kernel_{i}(void* c, void* t, void* e, void* o{params}, int64_t flags,
                             int64_t task, int64_t tasks) {{
  struct job_{i} whole = {{c, t, e, o, 1, {{0}}, {{{{0}}}}}}, *j = &whole;
  int64_t step;
  {setup}
  for (int64_t i = j->total * task / tasks; i < j->total * (task + 1) / tasks; ++i) {{
    int64_t at[3] = {{0, 0, 0}}, rest = i;
    for (int a = {out_rank} - 1; a >= 0; --a) {{
      int64_t index = rest % j->dim[a];
      rest /= j->dim[a];
      for (int k = 0; k < 3; ++k) at[k] += index * j->s[k][a];
    }}
    memcpy(j->o + i * {width}, j->c[at[0]] ? j->t + at[1] * {width} : j->e + at[2] * {width},
           {width});
  }}
  return {status};
}}
"""


def c_source(workloads, status=0):
    """One scalar loop per workload, of which every task does a share."""
    return _HEAD + "".join(_kernel(i, w, status) for i, w in enumerate(workloads))


def _kernel(i, w, status):
    names = w.dim_names
    setup = []
    for axis, dim in enumerate(w.out_shape):
        setup.append(f"j->dim[{axis}] = {_extent(dim, names)}; j->total *= j->dim[{axis}];")
    sides = (
        (w.cond_shape, w.broadcast.cond_axes),
        (w.then_shape, w.broadcast.then_axes),
        (w.else_shape, w.broadcast.else_axes),
    )
    for k, (shape, axes) in enumerate(sides):
        setup.append("step = 1;")
        for dim, axis in zip(reversed(shape), reversed(axes), strict=True):
            if axis is not None:
                setup.append(f"j->s[{k}][{axis}] = step;")
            setup.append(f"step *= {_extent(dim, names)};")
    return _KERNEL.format(
        i=i,
        rank=max(len(w.out_shape), 1),
        out_rank=len(w.out_shape),
        width=w.element.width,
        params="".join(f", int64_t dim{k}" for k in range(len(names))),
        setup="\n  ".join(setup),
        status=status,
    )


def _extent(dim, names):
    return str(dim) if isinstance(dim, int) else f"dim{names.index(dim)}"


def compile_c(source, out, *options):
    """Compile a file of C."""
    command = (*c_compiler(), "-std=gnu11", "-O1", "-fPIC", *options, str(source), "-o", str(out))
    subprocess.run(command, check=True)
    return out


def build(
    workloads,
    path,
    *,
    bytes_per_thread=0,
    status=0,
    cpu_features=(),
    described=None,
    edit=str,
    places=None,
):
    """Compile, link and describe a library at ``path``."""
    source = path.with_suffix(".c")
    source.write_text(edit(c_source(workloads, status)))
    objects = compile_c(source, path.with_suffix(".o"), "-c")
    entries = {w: entry(i, bytes_per_thread) for i, w in enumerate(workloads)}
    made = described or manifest(workloads, cpu_features)
    linked([objects], entries, {"x86-64": ()}, made, path, places)
    return path


def linked(
    objects,
    entries,
    levels,
    described,
    path,
    places=None,
):
    """Link objects to a library, as a build does."""
    half = link.CPU if places is None else link.FAMILY
    source = link.stub_source(entries, levels, described.c_functions, places)
    link_stub(source, objects, half, described, path)


def entry(i=0, bytes_per_thread=0):
    """The ``i``-th kernel of a library of ours."""
    decisions = Decisions(bytes_per_thread=bytes_per_thread)
    return [link.Version(f"te_select_kernel_{i}", decisions)]


def manifest(workloads, cpu_features=(), *, plain=False):
    """A manifest like the compiler's, with plain C functions or without."""
    lanes = Choice({"lanes": 8}, "default", "")
    return Manifest(
        tuple(KernelRecord(w, lanes, c_function=c_name(w) if plain else "") for w in workloads),
        {"name": "x86-64", **HERE, "cpu_features": list(cpu_features)},
        {"te-select": "0"},
    )


@cache
def library_of(*workloads, **how):
    """The path of a library that is built once in a process."""
    return build(workloads, new_folder() / "mask.so", **how)


@cache
def kernel(workload, **how):
    """A loaded kernel."""
    loaded = loading.load(library_of(workload, **how))
    assert isinstance(loaded, Kernel)
    return loaded
