"""Compile the causal mask of a GPT-2 attention layer for this CPU, and run it elsewhere.

Attention scores [1, 12, 1024, 1024] keep their value where the mask is true and become -inf where
it is not. A second process, which never imports tvm, loads the exported library.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import te_select

HERE = Path(__file__).resolve().parent
WORKLOAD = te_select.Workload(
    cond_shape=(1, 1, 1024, 1024), then_shape=(1, 12, 1024, 1024), else_shape=(), dtype="float32"
)


def main() -> None:
    """Compile, export, and start the second process."""
    kernel = te_select.compile(WORKLOAD)
    path = kernel.export(HERE.parents[1] / "build" / "causal_mask.so")
    print(f"compiled  {WORKLOAD}")
    print(f"target    {kernel.target}")
    print(f"profile   {kernel.in_effect.get('advice', 'measured')}")
    print(f"exported  {path}, {path.stat().st_size / 1024:.0f} KB", flush=True)
    subprocess.run([sys.executable, HERE / "run_exported.py", path], check=True)


if __name__ == "__main__":
    main()
