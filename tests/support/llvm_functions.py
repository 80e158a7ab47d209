"""Functions written as LLVM IR, compiled by TVM for this CPU and called from Python."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvm import ir, tirx

from te_select.backends.c_compiler import c_compiler
from te_select.backends.cpu import lowering
from te_select.backends.targets import resolve


def compiled(text: str, symbol: str, parameters: Sequence[str], folder: Path) -> Callable[..., Any]:
    """Compile a void function.

    Parameters
    ----------
    text
        LLVM IR that defines ``symbol``.
    symbol
        The function.
    parameters
        Of each ``"ptr"`` or ``"i64"``.
    folder
        Where to write.

    Returns
    -------
    callable
        Takes addresses and ints.
    """
    types = {"ptr": ir.PointerType(ir.PrimType("uint8")), "i64": ir.PrimType("int64")}
    variables = [ir.Var(f"p{k}", types[kind]) for k, kind in enumerate(parameters)]
    call = tirx.Evaluate(tirx.call_extern("void", symbol, *variables))
    body = tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", ir.StringImm(text), call)
    attrs = {"global_symbol": "run", "calling_conv": 2}
    func = tirx.PrimFunc(variables, body, ir.PrimType("int32")).with_attr(attrs)
    object_file, library = folder / f"{symbol}.o", folder / f"{symbol}.so"
    lowering.build([func], resolve("native").tvm).write_to_file(str(object_file), "o")
    command = [*c_compiler(), "-shared", "-fPIC", str(object_file), "-o", str(library)]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).run
    wrap = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64}
    return lambda *values: function(
        *(wrap[kind](value) for kind, value in zip(parameters, values, strict=True))
    )
