"""Runs a worker's module without torch: ``python -m ...start FOLDER MODULE``.

Workers pass only NumPy arrays. With torch, importing tvm_ffi took three times as long.
"""

from __future__ import annotations

import runpy
import sys

from te_select.machines.imports import without_torch

if __name__ == "__main__":
    with without_torch():
        runpy.run_module(sys.argv[2], run_name="__main__")
