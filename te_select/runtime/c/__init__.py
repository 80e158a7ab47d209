"""The C half: sources of four programs.

`operand_order.h` is for all of them, and `overlap.h` for the first two.

- ``host.c``, ``plain.c`` and a folder for each kind of machine are the host half of libraries.
- ``where`` walks a call of `te_select.where`, in the library of its kernels.
- ``extension`` is the module for Python.
- ``onnxruntime`` is a plug-in for ONNX Runtime, in the library of the kernels, too.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
