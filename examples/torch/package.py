"""Packages a model that has te_select::where by AOTInductor, and prints the sum of its output.

Run ``python examples/torch/package.py model.pt2``. ``packaged.cc`` runs the file without Python.
"""

import sys
from typing import Any

import torch

from te_select.torch import where


class Masked(torch.nn.Module):
    """Scores, doubled, with -1 in the places that a mask leaves out."""

    def forward(self, mask: Any, scores: Any) -> Any:
        """Keep the operator as it is by ``opaque``; else Inductor would fuse it."""
        return where(mask, scores * 2, -1.0, opaque=True) + 1


def main() -> None:
    """Export the model, package it and run it."""
    scores = torch.arange(48, dtype=torch.float32).reshape(4, 12)
    mask = torch.arange(12).remainder(3).eq(0)
    program = torch.export.export(Masked(), (mask, scores))
    torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[1])
    print(int(Masked()(mask, scores).sum()))


if __name__ == "__main__":
    main()
