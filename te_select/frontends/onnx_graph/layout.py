"""Shapes of outputs of operators that keep, move, drop or contract axes.

A rule assumes that the model runs. It raises an error if too little is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from te_select.frontends.onnx_graph.nodes import Node
from te_select.frontends.symbolic import expressions as ex
from te_select.frontends.symbolic.expressions import UNKNOWN, Expression, Scalar
from te_select.frontends.symbolic.tensors import Dims, Tensor, broadcast_dim, broadcast_dims
from te_select.frontends.words import words

Inputs = Sequence[Tensor | None]
Shapes = Sequence[Sequence[Scalar] | None]
Rule = Callable[[Node, Inputs], Shapes]

_SAME_AS_FIRST = words(
    "Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization Bernoulli BitwiseNot Cast CastLike "
    "Ceil Celu Clip Cos Cosh CumSum DequantizeLinear Dropout DynamicQuantizeLinear Elu Erf Exp "
    "EyeLike Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax Identity "
    "BitCast InstanceNormalization IsInf IsNaN LRN LeakyRelu Log LogSoftmax LpNormalization "
    "MeanVarianceNormalization Mish Neg Not PRelu QuantizeLinear RMSNormalization RandomNormalLike "
    "RandomUniformLike Reciprocal Relu ReverseSequence RotaryEmbedding Round Scatter "
    "ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt "
    "Swish Tan Tanh TensorScatter ThresholdedRelu Trilu"
)
_BROADCASTS = words(
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less "
    "LessOrEqual Max Mean Min Mod Mul Or Pow Sub Sum Where Xor"
)
_REDUCTIONS = words(
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
    "ReduceSum ReduceSumSquare"
)


def dims_of(inputs: Inputs, index: int = 0) -> Dims:
    """The dims of an input; raises LookupError, which ends the rule, if they are not known."""
    tensor = inputs[index]
    if tensor is None or tensor.shape is None:
        raise LookupError(f"the shape of input {index} is not known")
    return tensor.shape


def ints_of(node: Node, name: str, inputs: Inputs, index: int) -> list[int] | None:
    """Ints from an attribute or an input; None if they are left out."""
    found = node.ints(name, inputs, index)
    if found is None and len(inputs) > index and inputs[index] is not None:
        raise LookupError(f"{name} is not known")
    return found


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the left."""
    if not -rank <= axis < rank:
        raise LookupError(f"there is no axis {axis} of {rank}")
    return axis % rank


def _same(node: Node, inputs: Inputs) -> Shapes:
    """The first output has the shape of the first input; so has the mask of Dropout."""
    count = 2 if node.op == "Dropout" else 1
    return [dims_of(inputs)] * count


def _broadcast(_node: Node, inputs: Inputs) -> Shapes:
    return [broadcast_dims([dims_of(inputs, i) for i in range(len(inputs))])]


def _constant(node: Node, _inputs: Inputs) -> Shapes:
    return [node.held.shape]


def _random(node: Node, _inputs: Inputs) -> Shapes:
    return [[int(dim) for dim in node.get("shape")]]


def _shape(_node: Node, _inputs: Inputs) -> Shapes:
    return [[UNKNOWN]]  # the tensor's rank is unknown; otherwise its values would be known


def _transpose(node: Node, inputs: Inputs) -> Shapes:
    dims = dims_of(inputs)
    perm = node.get("perm", list(reversed(range(len(dims)))))
    if sorted(perm) != list(range(len(dims))):
        raise LookupError("perm is no permutation")
    return [[dims[axis] for axis in perm]]


def _gather(node: Node, inputs: Inputs) -> Shapes:
    dims, indices = dims_of(inputs), dims_of(inputs, 1)
    axis = axis_of(node.get("axis", 0), len(dims))
    return [[*dims[:axis], *indices, *dims[axis + 1 :]]]


def _gather_elements(_node: Node, inputs: Inputs) -> Shapes:
    return [dims_of(inputs, 1)]


def _gather_nd(node: Node, inputs: Inputs) -> Shapes:
    dims, indices, batch = dims_of(inputs), dims_of(inputs, 1), node.get("batch_dims", 0)
    *outer, depth = indices
    if isinstance(depth, Expression) or not 0 <= batch <= batch + depth <= len(dims):
        raise LookupError("what an index reaches is not known")
    return [[*outer, *dims[batch + depth :]]]


def _squeeze(node: Node, inputs: Inputs) -> Shapes:
    dims, axes = dims_of(inputs), ints_of(node, "axes", inputs, 1)
    if axes is None:
        if any(isinstance(dim, Expression) for dim in dims):
            return [None]  # each of them may be 1
        return [[dim for dim in dims if dim != 1]]
    dropped = {axis_of(axis, len(dims)) for axis in axes}
    return [[dim for axis, dim in enumerate(dims) if axis not in dropped]]


def _unsqueeze(node: Node, inputs: Inputs) -> Shapes:
    dims, axes = list(dims_of(inputs)), ints_of(node, "axes", inputs, 1) or []
    rank = len(dims) + len(axes)
    new = {axis_of(axis, rank) for axis in axes}
    if len(new) < len(axes):
        raise LookupError("axes are doubled")
    return [[1 if axis in new else dims.pop(0) for axis in range(rank)]]


def _reduce(node: Node, inputs: Inputs) -> Shapes:
    dims, keep = dims_of(inputs), node.get("keepdims", 1)
    try:
        axes = ints_of(node, "axes", inputs, 1)
    except LookupError:
        return [[1 if dim == 1 else UNKNOWN for dim in dims]] if keep else [None]
    if not axes:
        axes = [] if node.get("noop_with_empty_axes", 0) else list(range(len(dims)))
    return [_without(dims, axes, keep=keep)]


def _arg(node: Node, inputs: Inputs) -> Shapes:
    return [_without(dims_of(inputs), [node.get("axis", 0)], keep=node.get("keepdims", 1))]


def _without(dims: Dims, axes: Sequence[int], *, keep: int) -> list[Scalar]:
    dropped = {axis_of(axis, len(dims)) for axis in axes}
    if keep:
        return [1 if axis in dropped else dim for axis, dim in enumerate(dims)]
    return [dim for axis, dim in enumerate(dims) if axis not in dropped]


def _matmul(_node: Node, inputs: Inputs) -> Shapes:
    a, b = dims_of(inputs), dims_of(inputs, 1)
    rows = a[-2:-1]  # empty if a is a vector
    columns = b[-1:] if len(b) > 1 else ()
    return [[*broadcast_dims([a[:-2], b[:-2]]), *rows, *columns]]


def _q_linear_matmul(node: Node, inputs: Inputs) -> Shapes:
    return _matmul(node, [inputs[0], inputs[3]])


def _gemm(node: Node, inputs: Inputs) -> Shapes:
    a, b = dims_of(inputs), dims_of(inputs, 1)
    return [[a[1 if node.get("transA", 0) else 0], b[0 if node.get("transB", 0) else 1]]]


def _einsum(node: Node, inputs: Inputs) -> Shapes:
    equation = node.get("equation", b"").decode().replace(" ", "")
    terms, arrow, result = equation.partition("->")
    if "." in equation or not arrow:
        raise LookupError("the equation leaves axes open")
    met: dict[str, list[int | Expression]] = {}
    for i, term in enumerate(terms.split(",")):
        for letter, dim in zip(term, dims_of(inputs, i), strict=True):
            met.setdefault(letter, []).append(dim)
    return [[broadcast_dim(met[letter]) for letter in result]]


def _pool_all(_node: Node, inputs: Inputs) -> Shapes:
    dims = dims_of(inputs)
    return [[*dims[:2], *(1 for _ in dims[2:])]]


def _non_zero(_node: Node, inputs: Inputs) -> Shapes:
    rank = len(dims_of(inputs))
    return [[rank, UNKNOWN]] if rank else [None]


def _layer_norm(node: Node, inputs: Inputs) -> Shapes:
    dims = dims_of(inputs)
    axis = axis_of(node.get("axis", -1), len(dims))
    statistics = [*dims[:axis], *(1 for _ in dims[axis:])]
    return [dims, statistics, statistics]


def _unknown_count(_node: Node, _inputs: Inputs) -> Shapes:
    """Compress and Unique without an axis: a vector of unknown length."""
    return [[UNKNOWN]]


def _compress(node: Node, inputs: Inputs) -> Shapes:
    if "axis" not in node.attributes:
        return _unknown_count(node, inputs)
    dims: list[Scalar] = list(dims_of(inputs))
    dims[axis_of(node.get("axis"), len(dims))] = UNKNOWN
    return [dims]


def _recurrent(node: Node, inputs: Inputs) -> Shapes:
    """LSTM, GRU and RNN: all hidden states, the last hidden state, and the last cell."""
    length, batch, _ = dims_of(inputs)
    if node.get("layout", 0):
        length, batch = batch, length
    hidden = dims_of(inputs, 2)[2]  # of the recurrence weights
    directions = 2 if node.get("direction", b"forward") == b"bidirectional" else 1
    if node.get("layout", 0):
        last = [batch, directions, hidden]
        return [[batch, length, directions, hidden], last, last]
    last = [directions, batch, hidden]
    return [[length, directions, batch, hidden], last, last]


def _attention(node: Node, inputs: Inputs) -> Shapes:
    query, value = dims_of(inputs), dims_of(inputs, 2)
    if len(query) == 4:  # noqa: PLR2004 - batch, heads, length, width
        return [[*query[:-1], value[-1]]]
    width = ex.floor_divide(value[-1], node.get("kv_num_heads"))
    return [[*query[:-1], ex.multiply(width, node.get("q_num_heads"))]]


def _loss(node: Node, inputs: Inputs) -> Shapes:
    """The losses of classes: one number, or one for each label."""
    reduced = node.get("reduction", b"mean") != b"none"
    first = () if reduced else dims_of(inputs, 1)
    return [first, dims_of(inputs)]  # the second output is log_prob


LAYOUT: dict[str, Rule] = {
    **dict.fromkeys(_SAME_AS_FIRST, _same),
    **dict.fromkeys(_BROADCASTS, _broadcast),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "ArgMax": _arg,
    "ArgMin": _arg,
    "Attention": _attention,
    "Compress": _compress,
    "Constant": _constant,
    "Einsum": _einsum,
    "GRU": _recurrent,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Gemm": _gemm,
    "GlobalAveragePool": _pool_all,
    "GlobalLpPool": _pool_all,
    "GlobalMaxPool": _pool_all,
    "LSTM": _recurrent,
    "LayerNormalization": _layer_norm,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "NegativeLogLikelihoodLoss": _loss,
    "NonMaxSuppression": lambda _node, _inputs: [[UNKNOWN, 3]],
    "NonZero": _non_zero,
    "QLinearMatMul": _q_linear_matmul,
    "RNN": _recurrent,
    "RandomNormal": _random,
    "RandomUniform": _random,
    "Shape": _shape,
    "Size": lambda _node, _inputs: [[]],
    "SoftmaxCrossEntropyLoss": _loss,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unique": _compress,
    "Unsqueeze": _unsqueeze,
}
