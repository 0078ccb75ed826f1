"""What an operator asks of its arguments, where only a part of its result is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyrometer.dataflow.demand import Demand, broadcast, reduced, reshaped
from pyrometer.dataflow.graph import Call, FlowGraph, Ref
from pyrometer.dataflow.selecting import Asked, selection
from pyrometer.source.words import words

ELEMENTWISE = frozenset(
    f"aten::{name}"
    for name in words("""
        add sub rsub mul div pow neg abs exp expm1 log log1p log2 sqrt rsqrt reciprocal sin cos tanh sigmoid relu gelu silu leaky_relu elu
        hardswish hardtanh hardsigmoid softplus erf clamp clamp_min clamp_max where maximum minimum lerp addcmul addcdiv square sign floor ceil round
        logical_and logical_or logical_not bitwise_and bitwise_or bitwise_not eq ne lt le gt ge masked_fill threshold mish clone _to_copy atan2 atan
        native_dropout bernoulli detach alias lift_fresh nan_to_num fmod remainder contiguous log_sigmoid_forward
        """)
)
RESHAPING = frozenset(
    f"aten::{name}"
    for name in words("view _unsafe_view reshape unsqueeze squeeze flatten unflatten _reshape_alias")
)
REDUCING = frozenset(
    f"aten::{name}"
    for name in words(
        "sum mean amax amin argmax argmin max min any all var std prod logsumexp norm linalg_vector_norm var_mean"
    )
)
SPATIAL = frozenset(
    f"aten::{name}"
    for name in words("""
        convolution max_pool2d_with_indices avg_pool2d upsample_bilinear2d upsample_nearest2d upsample_bicubic2d _upsample_bilinear2d_aa
        reflection_pad2d replication_pad2d constant_pad_nd max_pool2d avg_pool1d
        """)
)
ATTENTION = frozenset(
    f"aten::_scaled_dot_product_{name}"
    for name in words(
        "flash_attention_for_cpu flash_attention efficient_attention attention_math cudnn_attention fused_attention_overrideable"
    )
)
ORDERING = frozenset(
    f"aten::{name}" for name in words("sort argsort cumsum cumprod cummax cummin logcumsumexp")
)
"""What they say of one element of a row depends on the others."""

MASKED_OUT = 0.5
"""Share of zeros in a mask from which it selects."""


def asks(graph: FlowGraph, call: Call, demand: Demand | None, result: int) -> Iterator[Asked]:
    """What a call asks of the values that it reads.

    Args:
        graph: that the call belongs to.
        call: the operator.
        demand: the part of the result that is asked for.
        result: number of the value that it is asked of.
    """
    selected = selection(graph, call, demand, result)
    if selected is not None:
        yield selected
        yield from ((value, None) for value in call.reads if value != selected[0])
        return
    passes = _passing(call.name)
    given = {} if passes is None or demand is None or call.mutates else dict(passes(graph, call, demand))
    masked = dict(_masked(graph, call, demand)) if call.name == "aten::mul" else {}
    for value in call.reads:
        yield value, masked.get(value, given.get(value))


def is_for_all(graph: FlowGraph, call: Call, demand: Demand) -> bool:
    """Whether an operator could not do less for that part of its result."""
    rank = len(graph.values[call.writes[0]].shape)
    if call.name in {"aten::_log_softmax", "aten::_softmax"}:
        return call.argument(1, -1) % rank in demand.dims
    if call.name in ORDERING:
        dims = [argument for argument in call.arguments[1:] if type(argument) is int]
        return (dims[0] if dims else -1) % max(rank, 1) in demand.dims
    if call.name in SPATIAL:
        return not demand.regular and bool(demand.dims - {0})
    if call.name in {"aten::mm", "aten::addmm"}:
        return demand.dims == {1} and not demand.regular
    return False


def _passing(name: str) -> Callable[[FlowGraph, Call, Demand], Iterator[Asked]] | None:
    if name in ELEMENTWISE:
        return _elementwise
    if name in RESHAPING:
        return _reshaping
    if name in REDUCING:
        return _reducing
    if name in SPATIAL:
        return _spatial
    if name in ATTENTION:
        return _attention
    return _PASSING.get(name)


def _elementwise(graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    shape = graph.values[call.writes[0]].shape
    operands = [graph.values[value] for value in call.reads]
    joined = [value for value in operands if value.shape == shape and value.maker is not None]
    if call.name == "aten::add" and len(joined) > 1 and demand.dims != {0}:
        return  # a residual connection: what comes before is a body that mixes positions
    for value in operands:
        yield value.number, broadcast(demand, shape, value.shape)


def _reshaping(graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    before = graph.values[call.reads[0]]
    yield before.number, reshaped(demand, graph.values[call.writes[0]].shape, before.shape)


def _reducing(graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    over = call.argument(2 if call.name in {"aten::norm", "aten::linalg_vector_norm"} else 1)
    keeps = len(graph.values[call.writes[0]].shape) == len(graph.values[call.reads[0]].shape)
    if over is None or isinstance(over, Ref):
        return
    dims = [over] if isinstance(over, int) else list(over)
    yield call.reads[0], reduced(demand, dims, len(graph.values[call.reads[0]].shape), keeps=keeps)


def _spatial(_graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    if 1 not in demand.dims or call.name != "aten::convolution":
        yield call.reads[0], demand


def _attention(_graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    given = [each.value for each in call.arguments[:3] if isinstance(each, Ref)]
    if len(given) < 3:
        return
    if demand.dims <= {0, 1}:
        yield from ((number, demand) for number in dict.fromkeys(given))
    elif demand.dims <= {0, 1, 2} and given[0] not in given[1:]:
        yield given[0], demand


def _product(left: int, right: int, first: int) -> Callable[[FlowGraph, Call, Demand], Iterator[Asked]]:
    """A product of the arguments at two positions, whose results keep `first` dimensions of the left one."""

    def asked(_graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
        a, b = call.argument(left), call.argument(right)
        if not isinstance(a, Ref) or not isinstance(b, Ref):
            return
        if demand.dims <= set(range(first)):
            yield a.value, demand
        if demand.dims <= set(range(first - 1)) or (demand.dims == {first} and first == 1 and demand.regular):
            yield b.value, demand

    return asked


def _normalised(graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    rank = len(graph.values[call.reads[0]].shape)
    sizes = call.argument(1)
    if demand.dims <= set(range(rank - len(sizes))):
        yield call.reads[0], demand


def _softmax(graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    rank = len(graph.values[call.reads[0]].shape)
    if call.argument(1, -1) % rank not in demand.dims:
        yield call.reads[0], demand


def _permuted(graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    rank = len(graph.values[call.reads[0]].shape)
    if call.name == "aten::t":
        order = list(range(rank))[::-1]
    elif call.name == "aten::transpose":
        order = list(range(rank))
        i, j = call.argument(1) % rank, call.argument(2) % rank
        order[i], order[j] = order[j], order[i]
    else:
        order = [dim % rank for dim in call.argument(1)]
    yield call.reads[0], demand.along(order[dim] for dim in demand.dims)


def _expanded(graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    yield (
        call.reads[0],
        broadcast(demand, graph.values[call.writes[0]].shape, graph.values[call.reads[0]].shape),
    )


def _joined(graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    rank = len(graph.values[call.writes[0]].shape)
    dim = call.argument(1, 0)
    dim = dim % rank if isinstance(dim, int) else 0
    if dim in demand.dims:
        return
    lost = call.name == "aten::stack"
    for value in call.reads:
        yield value, demand.along(each - (lost and each > dim) for each in demand.dims)


def _grid(_graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    picture, grid = call.argument(0), call.argument(1)
    if not isinstance(picture, Ref) or not isinstance(grid, Ref):
        return
    if demand.dims == {0}:
        yield picture.value, demand
    if 1 not in demand.dims:
        yield grid.value, demand.along(dim - (dim > 1) for dim in demand.dims)


def _batched(_graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    if demand.dims == {0}:
        yield call.reads[0], demand


def _batch_norm(_graph: FlowGraph, call: Call, demand: Demand) -> Iterator[Asked]:
    if call.argument(5) is False and 1 not in demand.dims:
        yield call.reads[0], demand


_PASSING: dict[str, Callable[[FlowGraph, Call, Demand], Iterator[Asked]]] = {
    "aten::mm": _product(0, 1, 1),
    "aten::addmm": _product(1, 2, 1),
    "aten::bmm": _product(0, 1, 2),
    "aten::baddbmm": _product(1, 2, 2),
    "aten::native_layer_norm": _normalised,
    "aten::_softmax": _softmax,
    "aten::_log_softmax": _softmax,
    "aten::t": _permuted,
    "aten::transpose": _permuted,
    "aten::permute": _permuted,
    "aten::expand": _expanded,
    "aten::cat": _joined,
    "aten::stack": _joined,
    "aten::grid_sampler_2d": _grid,
    "aten::native_group_norm": _batched,
    "aten::native_batch_norm": _batch_norm,
    "aten::_native_batch_norm_legit_no_training": _batched,
}


def _masked(graph: FlowGraph, call: Call, demand: Demand | None) -> Iterator[Asked]:
    """What a product with a mask of whole rows asks of what it masks."""
    shape = graph.values[call.writes[0]].shape
    for number in call.reads:
        mask = graph.values[number]
        rows = [i for i, size in enumerate(mask.shape) if size > 1]
        if (
            (mask.zero_share or 0.0) < MASKED_OUT
            or mask.numel >= graph.values[call.writes[0]].numel
            or not rows
        ):
            continue
        shift = len(shape) - len(mask.shape)
        own = Demand(
            frozenset(i + shift for i in rows), 1 - (mask.zero_share or 0.0), call.number, regular=False
        )
        for other in call.reads:
            if (
                other != number
                and graph.values[other].shape == shape
                and (demand is None or demand.dims == own.dims)
            ):
                yield other, own
