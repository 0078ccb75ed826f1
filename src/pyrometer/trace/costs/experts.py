"""Mixtures of experts, as inference engines compute them: both products of the chosen experts, fused; choosing and summing.

Which experts the tokens chose is not recorded. Of their weights those of as many experts are taken to be read as the
tokens can reach, at most all: with more than a few tokens that is nearly all of them.
"""

from __future__ import annotations

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost

REACHED = "weights read of as many experts as the tokens can reach"


@cost(
    "vllm::inplace_fused_experts",
    "vllm::outplace_fused_experts",
    "sglang::inplace_fused_experts",
    "sglang::outplace_fused_experts",
    "aiter::fused_moe_",
    "aiter::ck_moe",
    source="2·tokens·k·(hidden·2I + I·hidden): the product into gate and up, and the one back",
)
def fused_experts(call: Call) -> Cost:
    """`(hidden, w1, w2, topk_weights, topk_ids, …)`: `fused_moe.py` of vLLM, SGLang and aiter; `w1` is `(experts, 2I, hidden)`."""
    x, w1, w2 = call.tensor(0, dims=2), call.tensor(1, dims=3), call.tensor(2, dims=3)
    tokens, hidden = x.shape
    if w1.shape[2] != hidden or w2.shape[1] != hidden:
        raise NotRecordedError("weights as (experts, 2I, hidden) and (experts, hidden, I); these are packed")
    chosen = call.tensor(4, dims=2).numel
    flop = 2 * chosen * (hidden * w1.shape[1] + w2.shape[2] * hidden)
    experts = w1.shape[0]
    weights = (w1.num_bytes + w2.num_bytes) * min(experts, chosen) // max(experts, 1)
    routing = call.tensor(3).num_bytes + call.tensor(4).num_bytes
    written = tokens * hidden * x.item_bytes
    return Cost(flop, x.num_bytes + weights + routing, written, x.dtype, "matrix", REACHED)


@cost("_moe_C::topk_softmax", "sgl_kernel::topk_softmax", source="5 per score: softmax over the experts")
def topk_softmax(call: Call) -> Cost:
    """`(weights, indices, …, scores)`; scores stand third in sgl-kernel, fourth in vLLM."""
    scores = call.tensor(2 if call.name.startswith("sgl_kernel") else 3)
    written = call.tensor(0).num_bytes + call.tensor(1).num_bytes
    return Cost(5 * scores.numel, scores.num_bytes, written, scores.dtype)


@cost("_moe_C::moe_sum", "aiter::moe_sum", source="1 per element: the results of the chosen experts added up")
def moe_sum(call: Call) -> Cost:
    """`(input, output)`: `(tokens, k, hidden)` to `(tokens, hidden)`."""
    x, out = call.tensor(0, dims=3), call.tensor(1)
    return Cost(max(x.numel - out.numel, 0), x.num_bytes, out.num_bytes, x.dtype)
