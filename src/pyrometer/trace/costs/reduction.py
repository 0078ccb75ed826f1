"""Reductions, scans, sorting and searching."""

from __future__ import annotations

import math

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor

INDEX_BYTES = 8


def reduced_numel(shape: tuple[int, ...], dims: list[int]) -> int:
    """Elements that are left when some dimensions are reduced; all of them when none is named.

    >>> reduced_numel((2, 3, 4), [-1]), reduced_numel((2, 3), [])
    (6, 1)
    """
    if not dims:
        return 1
    gone = {dim % len(shape) for dim in dims} if shape else set()
    return math.prod(size for i, size in enumerate(shape) if i not in gone)


def _result(call: Call, x: Tensor, dims_at: int | None) -> tuple[int, str | None]:
    if dims_at is None or len(call.texts) == 0:
        text = None if dims_at is None else "result taken as one element: the dimensions are not recorded"
        return 1, text
    if dims_at >= len(call.texts) or not call.texts[dims_at]:
        return 1, None
    try:
        dims = call.ints(dims_at)
    except NotRecordedError:
        dims = [call.integer(dims_at)]
    return reduced_numel(x.shape, dims), None


def _reduction(
    call: Call, dims_at: int | None, flop: int, *, out_dtype: str = "", indices: bool = False
) -> Cost:
    x = call.tensor(0)
    numel, assumption = _result(call, x, dims_at)
    item = Tensor((), out_dtype or x.dtype).item_bytes + (INDEX_BYTES if indices else 0)
    return Cost(flop * x.numel, x.num_bytes, numel * item, x.dtype, "vector", assumption)


@cost(
    "aten::sum",
    "aten::nansum",
    "aten::prod",
    "aten::amax",
    "aten::amin",
    source="1 per element read",
)
@cost("aten::mean", source="1 per element read", wraps=True)
def fold(call: Call) -> Cost:
    """`(input, dims, …)`."""
    x = call.tensor(0)
    widened = (
        "int64" if not x.dtype.startswith(("float", "bfloat", "complex")) and "am" not in call.name else ""
    )
    return _reduction(call, 1, 1, out_dtype=widened)


@cost("aten::any", "aten::all", source="1 per element read")
def truth(call: Call) -> Cost:
    """`(input, dim, …)`, to bool."""
    return _reduction(call, 1, 1, out_dtype="bool")


@cost("aten::max", "aten::min", "aten::median", "aten::mode", "aten::kthvalue", source="1 per element read")
def extreme(call: Call) -> Cost:
    """`(input)`, `(input, dim, …)` to values and indices, or two tensors elementwise."""
    other = call.maybe(1)
    if other is not None:
        x = call.tensor(0)
        return Cost(x.numel, x.num_bytes + other.num_bytes, x.numel * x.item_bytes, x.dtype)
    return _reduction(call, 1, 1, indices=len(call.texts) > 1)


@cost("aten::argmax", "aten::argmin", source="1 per element read")
def arg_extreme(call: Call) -> Cost:
    """`(input, dim, …)`, to indices."""
    return _reduction(call, 1, 1, out_dtype="int64")


@cost(
    "aten::var",
    "aten::std",
    "aten::var_mean",
    "aten::std_mean",
    source="4 per element read: mean, deviation, square, sum",
)
def spread(call: Call) -> Cost:
    """`(input, dims, …)`."""
    return _reduction(call, 1, 4)


@cost("aten::norm", source="2 per element read", wraps=True)
@cost("aten::linalg_vector_norm", source="2 per element read")
def norm(call: Call) -> Cost:
    """`(input, order, dims, …)`."""
    return _reduction(call, 2, 2)


@cost("aten::logsumexp", source="4 per element read", wraps=True)
def logsumexp(call: Call) -> Cost:
    """`(input, dims, …)`: maximum, difference, exponential, sum."""
    return _reduction(call, 1, 4)


@cost("aten::count_nonzero", source="1 per element read")
def count(call: Call) -> Cost:
    """`(input, dims)`."""
    return _reduction(call, 1, 1, out_dtype="int64")


@cost("aten::cumsum", "aten::cumprod", "aten::logcumsumexp", "aten::cumsum_", source="1 per element")
def scan(call: Call) -> Cost:
    """`(input, dim)`; whole numbers to int64."""
    x = call.tensor(0)
    floating = x.dtype.startswith(("float", "bfloat", "complex"))
    item = x.item_bytes if floating or call.in_place else INDEX_BYTES
    return Cost(x.numel, x.num_bytes, x.numel * item, x.dtype)


@cost("aten::sort", source="log₂(n) comparisons per element, n along the dimension")
@cost("aten::argsort", source="log₂(n) comparisons per element, n along the dimension", wraps=True)
def sort(call: Call) -> Cost:
    """Values and indices; a lower bound of bytes, since sorting takes several passes."""
    x = call.tensor(0)
    try:
        n = x.shape[call.integer(1)] if x.shape else 1
    except (NotRecordedError, IndexError):
        n = max(x.shape, default=1)
    flop = x.numel * max(math.ceil(math.log2(max(n, 1))), 0)
    return Cost(flop, x.num_bytes, x.numel * (x.item_bytes + INDEX_BYTES), x.dtype)


@cost("aten::topk", source="1 per element read")
def topk(call: Call) -> Cost:
    """`(input, k, dim, …)`, to values and indices."""
    x = call.tensor(0)
    k = call.integer(1)
    rows = reduced_numel(x.shape, [call.integer(2)]) if x.shape else 1
    return Cost(x.numel, x.num_bytes, rows * k * (x.item_bytes + INDEX_BYTES), x.dtype)


@cost("aten::bucketize", "aten::searchsorted", source="log₂(boundaries) per element")
def search(call: Call) -> Cost:
    """Binary search of each value."""
    at = 0 if call.name == "aten::bucketize" else 1
    values, bounds = call.tensor(at), call.tensor(1 - at)
    steps = math.ceil(math.log2(max(bounds.shape[-1], 1) + 1)) if bounds.shape else 1
    return Cost(
        values.numel * steps,
        values.num_bytes + bounds.num_bytes,
        values.numel * INDEX_BYTES,
        values.dtype,
    )
