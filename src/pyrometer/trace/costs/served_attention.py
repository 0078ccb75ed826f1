"""Attention of inference engines: packed batches of sequences of any length, and keys and values in a paged cache.

Shapes tell how many new tokens there are, and not what each of them attends to: that stands in tensors of lengths, whose
values no trace holds. It is taken from what the engine's annotation says of the step (`naming/engine_names.py`: sums
over the requests), or where all sequences of a packed batch must have the same length, from the shapes. Elsewhere the
formula says what is missing: the size of the cache would be a guess.

FLOP are 2·H·pairs·(D + D_v), with the pairs of a new token and one that it sees under a causal mask. Bytes are the queries and
the result once, and of the cache what the requests attend to: `keys`·H_kv·(D + D_v).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pyrometer.trace.costs.attention import visible_pairs
from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor

UNKNOWN = "the lengths of the sequences, which an engine with detailed annotations tells per step"


class Packed(NamedTuple):
    """Where an operator over a packed batch has its arguments; -1 where it has none."""

    bounds: int  # cumulative lengths of the queries
    longest: int  # longest query; the longest key follows
    causal: int
    pages: int  # table of the cache's blocks
    query: int = 0


PACKED: Mapping[str, Packed] = MappingProxyType(
    {
        "_vllm_fa2_C::varlen_fwd": Packed(4, 10, 15, 8),
        "_vllm_fa3_C::fwd": Packed(7, 12, 24, 14),
        "sgl_kernel::fwd": Packed(7, 12, 24, 14),
        "flash_attn::_flash_attn_varlen_forward": Packed(3, 5, 9, 15),
        "aiter::mha_varlen_fwd": Packed(3, 5, -1, -1),
        "vllm::unified_attention": Packed(-1, -1, -1, -1),
        "vllm::unified_attention_with_output": Packed(-1, -1, -1, -1),
    }
)
"""Arguments begin with query, key and value: `flash_api_torch_lib.cpp` of vLLM's flash-attention, `flash_extension.cc` of
sgl-kernel, `flash_attn_interface.py`, `ops/mha.py` of aiter, `attention.py` of vLLM."""

PAGED: Mapping[str, int] = MappingProxyType(
    {
        "_C::paged_attention_v1": 1,
        "_C::paged_attention_v2": 4,
        "_rocm_C::paged_attention": 4,
        "aiter::paged_attention_rocm": 4,
        "aiter::paged_attention_v1": 2,
        "aiter::paged_attention_ragged": 2,
    }
)
"""Position of the query; the caches of keys and values follow: `torch_bindings.cpp` of vLLM, `ops/attention.py` of aiter."""

HEADS_BESIDE = frozenset({"aiter::paged_attention_v1", "aiter::paged_attention_ragged"})
"""Of these the number of heads of the cache is no argument: it stands in the cache's shape."""


@cost(*PACKED, source="2·H·pairs·(D + D_v); keys and values of the requests read once")
def packed_attention(call: Call) -> Cost:
    """`(tokens, heads, D)` for the queries; keys and values packed likewise, or `(blocks, block, heads, D)` in pages."""
    at = PACKED[call.name]
    q, k, v = (call.tensor(at.query + i) for i in range(3))
    if len(q.shape) != 3 or len(k.shape) not in {3, 4}:
        raise NotRecordedError("queries as (tokens, heads, size of a head)")
    return _cost(q, k, k.shape[-2], v.shape[-1], _lengths(call, at, q, k))


@cost(*PAGED, source="2·H·pairs·(D + D_v); keys and values of the requests read from the pages once")
def paged_attention(call: Call) -> Cost:
    """Decode from a paged cache, `(sequences, heads, D)` for the queries."""
    name = call.name if call.name in PAGED else "aiter::paged_attention_ragged"
    at = PAGED[name]
    q, cache = call.tensor(at, dims=3), call.tensor(at + 1)
    heads = _heads_of(cache) if name in HEADS_BESIDE else call.integer(at + 3)
    if call.serving is None or call.serving.decode.pairs is None or call.serving.decode.keys is None:
        raise NotRecordedError(UNKNOWN)
    decode = call.serving.decode
    return _cost(q, cache, heads, q.shape[2], (decode.pairs or 0, decode.keys or 0))


def _heads_of(cache: Tensor) -> int:
    """`(blocks, block, heads, D)`, with blocks of one token, which alone is told from the other order of the two."""
    if len(cache.shape) != 4 or cache.shape[1] != 1:
        raise NotRecordedError("which dimension of the cache is that of heads")
    return cache.shape[2]


def _cost(q: Tensor, k: Tensor, heads: int, size_v: int, lengths: tuple[int, int]) -> Cost:
    tokens, num_heads, size = q.shape
    pairs, keys = lengths
    flop = 2 * num_heads * pairs * (size + size_v)
    read = q.num_bytes + keys * heads * (size + size_v) * k.item_bytes
    return Cost(flop, read, tokens * num_heads * size_v * q.item_bytes, q.dtype, "matrix")


def _lengths(call: Call, at: Packed, q: Tensor, k: Tensor) -> tuple[int, int]:
    """Visible pairs, and tokens that are attended to."""
    if call.serving is not None:
        parts = (call.serving.prefill, call.serving.decode)
        pairs, keys = [part.pairs for part in parts], [part.keys for part in parts]
        if None not in pairs and None not in keys:
            return sum(filter(None, pairs)), sum(filter(None, keys))
    bounds = call.maybe(at.bounds) if at.bounds >= 0 else None
    paged = at.pages >= 0 and call.maybe(at.pages) is not None
    if bounds is None or at.causal < 0 or paged or len(k.shape) != 3:
        raise NotRecordedError(UNKNOWN)
    number = max(bounds.numel - 1, 1)
    longest_q, longest_k = (call.integer(at.longest + i) for i in (0, 1))
    if q.shape[0] != number * longest_q or k.shape[0] != number * longest_k:
        raise NotRecordedError(UNKNOWN)
    pairs_each = visible_pairs(longest_q, longest_k, causal=call.boolean(at.causal), bottom_right=True)
    return number * pairs_each, k.shape[0]
