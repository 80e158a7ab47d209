"""Functions of TIR: spans alone, and statements compiled for this CPU and called from Python."""

import ctypes
import re
import subprocess

import tvm
from tvm import ir, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from te_select.backends.cpu import lowering
from te_select.backends.programs import c_compiler
from te_select.backends.targets import resolve
from te_select.schedules.cpu.statements import statements

SPAN_PARAMETERS = {name: "ptr" for name in ("out", "cond", "then", "else_")} | {
    name: "i64" for name in ("n", "inner", "flags")
}


def function(parameters, write):
    """Make a function.

    Parameters
    ----------
    parameters
        Of each its name, and ``"ptr"`` or ``"i64"``.
    write
        Takes the parameters; it returns the body, or writes it into the builder of TIR.
    """
    types = {"ptr": ir.PointerType(ir.PrimType("uint8")), "i64": ir.PrimType("int64")}
    variables = [ir.Var(name, types[kind]) for name, kind in parameters.items()]
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("run")
        written = write(*variables)
        if written is not None:
            T.add_to_parent(written)
    attrs = {"global_symbol": "run", "calling_conv": 2}
    return tirx.PrimFunc(variables, builder.get().body, ir.PrimType("int32")).with_attr(attrs)


def span_function(span):
    """The function ``run(out, cond, then, else_, n, inner, flags)`` of a span."""

    def write(*given):
        *pointers, n, inner, flags = given
        addresses = dict(zip(("out", "cond", "then", "else"), pointers, strict=True))
        rows = tirx.IntImm("int64", span.inner) if span.inner else inner
        return statements(span, addresses, n, rows, flags)

    return function(SPAN_PARAMETERS, write)


def changed(func, right, wrong):
    """The same function with another text in the place of what a regex finds."""
    text, found = re.subn(right, wrong, func.script(show_meta=True))
    assert found, right
    text = re.sub(r"T\.let\[T\.uint\d+x\d+\]", "T.let", text)  # the parser lacks some vectors
    parsed = tvm.script.from_source(text, check_well_formed=False)
    return parsed.with_attr({"global_symbol": "run", "calling_conv": 2})


def compiled(func, parameters, folder):
    """Compile a function for this CPU; the result takes addresses and ints."""
    object_file, library = folder / "run.o", folder / "run.so"
    lowering.build([func], resolve("native").tvm).write_to_file(str(object_file), "o")
    command = [*c_compiler(), "-shared", "-fPIC", str(object_file), "-o", str(library)]
    subprocess.run(command, check=True)
    run = ctypes.CDLL(str(library)).run
    wrap = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64}
    return lambda *values: run(
        *(wrap[kind](value) for kind, value in zip(parameters, values, strict=True))
    )
