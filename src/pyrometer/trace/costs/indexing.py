"""Reading and writing elements by index: what is touched is counted, not the whole table."""

from __future__ import annotations

import math

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor

ROWS = "no FLOP; indices and their rows read, result written"


def _row(table: Tensor, dim: int) -> int:
    """Elements of one slice."""
    return table.numel // max(table.shape[dim], 1) if table.shape else 1


def _picked(table: Tensor, indices: Tensor, row: int) -> Cost:
    moved = indices.numel * row * table.item_bytes
    return Cost(0, indices.num_bytes + moved, moved, table.dtype)


@cost("aten::embedding", source=ROWS, wraps=True)
def embedding(call: Call) -> Cost:
    """`(table, indices)`."""
    table = call.tensor(0, dims=2)
    return _picked(table, call.tensor(1), table.shape[1])


@cost("aten::index_select", source=ROWS)
def index_select(call: Call) -> Cost:
    """`(input, dim, indices)`; the first dimension where the trace does not say which."""
    table = call.tensor(0)
    return _picked(table, call.tensor(2), _row(table, _dim(call, table)))


def _dim(call: Call, table: Tensor) -> int:
    try:
        dim = call.integer(1)
    except NotRecordedError:
        return 0
    return dim if -len(table.shape) <= dim < len(table.shape) else 0


@cost("aten::gather", "aten::take", source="no FLOP; indices and as many elements read, result written")
def gather(call: Call) -> Cost:
    """`(input, dim, indices)`."""
    return _picked(call.tensor(0), call.maybe(2) or call.tensor(1), 1)


@cost(
    "aten::scatter",
    "aten::scatter_",
    "aten::scatter_add",
    "aten::scatter_add_",
    "aten::scatter_reduce",
    "aten::scatter_reduce_",
    source="1 per element where it adds; indices, values (and, adding, targets) read, targets written",
)
def scatter(call: Call) -> Cost:
    """`(target, dim, indices, values)`; not in place the whole target is copied too."""
    target, indices = call.tensor(0), call.tensor(2)
    adds = "add" in call.name or "reduce" in call.name
    touched = indices.numel * target.item_bytes
    values = call.maybe(3)
    read = indices.num_bytes + (touched if values is not None else 0) + (touched if adds else 0)
    whole = 0 if call.in_place else target.num_bytes
    return Cost(indices.numel if adds else 0, read + whole, touched + whole, target.dtype)


@cost(
    "aten::index_add",
    "aten::index_add_",
    "aten::index_copy",
    "aten::index_copy_",
    "aten::index_fill_",
    source="1 per element where it adds; indices, values (and, adding, targets) read, targets written",
)
def index_write(call: Call) -> Cost:
    """`(target, dim, indices, values)`."""
    target, indices = call.tensor(0), call.tensor(2)
    adds = "add" in call.name
    touched = indices.numel * _row(target, _dim(call, target)) * target.item_bytes
    given = touched if call.maybe(3) is not None and call.tensor(3).shape else 0
    whole = 0 if call.in_place else target.num_bytes
    flop = touched // target.item_bytes if adds else 0
    return Cost(
        flop, indices.num_bytes + given + (touched if adds else 0) + whole, touched + whole, target.dtype
    )


@cost(
    "aten::index_put",
    "aten::index_put_",
    "aten::_index_put_impl_",
    source="values read, targets written; indices are not recorded",
    wraps=True,
)
def index_put(call: Call) -> Cost:
    """`(target, indices, values, accumulate)`."""
    target, values = call.tensor(0), call.tensor(2)
    return Cost(0, values.num_bytes, values.numel * target.item_bytes, target.dtype)


@cost(
    "aten::embedding_dense_backward",
    source="1 per element of the gradient; gradient and indices read, touched rows written",
)
def embedding_backward(call: Call) -> Cost:
    """`(grad, indices, num_weights, …)`; the table of gradients is filled with zeros first."""
    grad, indices = call.tensor(0), call.tensor(1)
    rows = call.integer(2)
    table = rows * (grad.shape[-1] if grad.shape else 1) * grad.item_bytes
    touched = grad.numel * grad.item_bytes
    return Cost(grad.numel, grad.num_bytes + indices.num_bytes + touched, table + touched, grad.dtype)


@cost(
    "aten::_embedding_bag",
    "aten::_embedding_bag_forward_only",
    source="1 per element of the rows that are read and summed",
)
def embedding_bag(call: Call) -> Cost:
    """`(table, indices, offsets)`."""
    table, indices, offsets = call.tensor(0, dims=2), call.tensor(1), call.tensor(2)
    row = table.shape[1]
    read = indices.numel * row * table.item_bytes + indices.num_bytes + offsets.num_bytes
    return Cost(indices.numel * row, read, offsets.numel * row * table.item_bytes, table.dtype)


@cost(
    "aten::masked_select",
    "aten::nonzero",
    source="1 per element; input read; the result's size is not recorded",
)
def select_where(call: Call) -> Cost:
    """`(input[, mask])`."""
    tensors = call.all_tensors()
    if not tensors:
        raise NotRecordedError("the shapes of input and mask")
    read = sum(tensor.num_bytes for tensor in tensors)
    return Cost(
        max(tensor.numel for tensor in tensors), read, 0, tensors[0].dtype, "vector", "result left out"
    )


@cost("aten::one_hot", source="no FLOP; indices read, result written", wraps=True)
def one_hot(call: Call) -> Cost:
    """`(indices, num_classes)`."""
    indices = call.tensor(0)
    return Cost(0, indices.num_bytes, indices.numel * max(call.integer(1), 1) * 8, "int64")


@cost(
    "_C_cache_ops::reshape_and_cache_flash",
    "_C_cache_ops::reshape_and_cache",
    "_C_cache_ops::concat_and_cache_mla",
    "sglang::store_cache",
    source="no FLOP; keys and values read and written",
)
def cache_write(call: Call) -> Cost:
    """`(key, value, key_cache, …)` in vLLM and SGLang; for latent attention both parts go into one cache, which stands there."""
    key, value, cache = call.tensor(0), call.tensor(1), call.tensor(2)
    numel = key.numel + value.numel
    return Cost(0, key.num_bytes + value.num_bytes, numel * cache.item_bytes, key.dtype)


@cost(
    "_C::rotary_embedding",
    "sgl_kernel::rotary_embedding",
    source="6 per rotated element pair; query, key and the rows of the table read, both written",
)
def rotary(call: Call) -> Cost:
    """vLLM, sgl-kernel: `(positions, query, key, head_size, cos_sin_cache, …)`, in place."""
    positions, query = call.tensor(0), call.tensor(1)
    key, cache = call.maybe(2), call.tensor(4)
    moved = query.num_bytes + (key.num_bytes if key is not None else 0)
    rows = positions.numel * math.prod(cache.shape[1:]) * cache.item_bytes
    return Cost(3 * (moved // query.item_bytes), moved + rows + positions.num_bytes, moved, query.dtype)


@cost(
    "sgl_kernel::apply_rope_pos_ids_cos_sin_cache",
    source="6 per rotated element pair; query, key and the rows of the table read, the rotated ones written",
)
def rotary_apart(call: Call) -> Cost:
    """sgl-kernel: `(q, k, q_rope, k_rope, cos_sin_cache, pos_ids, …)`."""
    q, k, cache, positions = call.tensor(0), call.tensor(1), call.tensor(4), call.tensor(5)
    rows = positions.numel * math.prod(cache.shape[1:]) * cache.item_bytes
    moved = q.num_bytes + k.num_bytes
    return Cost(3 * (q.numel + k.numel), moved + rows + positions.num_bytes, moved, q.dtype)
