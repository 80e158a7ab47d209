"""A library as an operator of PyTorch, which torch.compile takes as it is.

te-select compile --cond 1,1,128,128 --then batch,12,128,128 --else "" -o build/batches.so
python examples/torch/attention.py build/batches.so
"""

from __future__ import annotations

import sys

import te_select

try:
    import torch
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}; pip install torch") from None
if not sys.argv[1:]:
    raise SystemExit(__doc__)
kernel = te_select.load(sys.argv[1])
assert isinstance(kernel, te_select.Kernel)


@torch.library.custom_op("te_select_example::mask", mutates_args=())
def mask(cond: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Scores where cond is true, and -inf elsewhere."""
    return kernel(cond, scores, float("-inf"))  # type: ignore[operator]


@mask.register_fake
def _(_cond: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(scores)


def attention(cond: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Weights of a masked attention layer."""
    return torch.softmax(mask(cond, q @ k.transpose(-1, -2)), -1)


cond = torch.ones(1, 1, 128, 128, dtype=torch.bool).tril()
q, k = torch.randn(2, 3, 12, 128, 64)
scores = q @ k.transpose(-1, -2)
expected = torch.softmax(scores.masked_fill(~cond, float("-inf")), -1)
assert torch.equal(attention(cond, q, k), expected)
torch.library.opcheck(mask, (cond, scores))
print(f"{scores.numel()} elements selected in PyTorch")
