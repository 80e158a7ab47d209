"""How ``te_select::where`` is divided among devices: the sharding rule for torch's DTensor.

Importing this registers the rule; it imports torch.distributed.tensor, which takes 0.7 s.
"""

from typing import Any

import torch
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding


def shardings(*operands: Any) -> list[tuple[list[Any], list[Any]]]:
    """Placements of out, and with them those of cond, x and y, on one axis of a mesh.

    All are replicated, or all are divided along one axis of out; an operand that does not move
    along that axis is replicated. DTensor redistributes other placements, such as partial sums.
    """
    found: list[tuple[list[Any], list[Any]]] = [([Replicate()], [Replicate()] * len(operands))]
    shapes = [each.shape for each in operands]
    rank = max(map(len, shapes))
    for back in range(1, rank + 1):
        is_divided = [len(shape) >= back and shape[-back] != 1 for shape in shapes]
        if any(is_divided):
            chosen = zip(shapes, is_divided, strict=True)
            placed = [Shard(len(shape) - back) if it else Replicate() for shape, it in chosen]
            found.append(([Shard(rank - back)], placed))
    return found


register_sharding(torch.ops.te_select.where.default)(shardings)
