"""Losses and their gradients; results are taken as reduced to a number unless the call says otherwise."""

from __future__ import annotations

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor

PER_ELEMENT = {
    "mse_loss": 3,
    "l1_loss": 3,
    "smooth_l1_loss": 5,
    "huber_loss": 5,
    "binary_cross_entropy": 7,
    "kl_div": 4,
}
LOGITS = "aten::binary_cross_entropy_with_logits"


def _reduction(call: Call, i: int) -> int:
    """0 none, 1 mean, 2 sum."""
    try:
        return call.integer(i)
    except NotRecordedError:
        return 1


@cost(*(f"aten::{name}" for name in PER_ELEMENT), source="3 to 7 per element, by definition", wraps=True)
def loss(call: Call) -> Cost:
    """`(input, target, [weight,] reduction)`."""
    x, target = call.tensor(0), call.tensor(1)
    at = 3 if call.name == "aten::binary_cross_entropy" else 2
    written = x.num_bytes if _reduction(call, at) == 0 else x.item_bytes
    flop = PER_ELEMENT[call.name.removeprefix("aten::")] * x.numel
    return Cost(flop, x.num_bytes + target.num_bytes, written, x.dtype)


@cost(*(f"aten::{name}_backward" for name in PER_ELEMENT if name != "kl_div"), source="4 per element")
def loss_backward(call: Call) -> Cost:
    """`(grad, input, target, …)`."""
    grad, x, target = call.tensor(0), call.tensor(1), call.tensor(2)
    return Cost(4 * x.numel, grad.num_bytes + x.num_bytes + target.num_bytes, x.num_bytes, x.dtype)


@cost(LOGITS, source="8 per element", wraps=True)
def logits_loss(call: Call) -> Cost:
    """`(input, target, weight, pos_weight, reduction)`."""
    x, target = call.tensor(0), call.tensor(1)
    written = x.num_bytes if _reduction(call, 4) == 0 else x.item_bytes
    return Cost(8 * x.numel, x.num_bytes + target.num_bytes, written, x.dtype)


@cost("aten::cross_entropy_loss", source="6 per element", wraps=True)
def cross_entropy(call: Call) -> Cost:
    """`(input, target, …)`, where it is not made of other operators."""
    x, target = call.tensor(0), call.tensor(1)
    return Cost(6 * x.numel, x.num_bytes + target.num_bytes, x.item_bytes, x.dtype)


@cost("aten::nll_loss", "aten::nll_loss_nd", "aten::nll_loss2d", source="1 per target", wraps=True)
@cost(
    "aten::nll_loss_forward", "aten::nll_loss2d_forward", source="1 per target; one element per target read"
)
def nll_loss(call: Call) -> Cost:
    """`(log_probabilities, target, …)`."""
    x, target = call.tensor(0), call.tensor(1)
    return Cost(target.numel, target.num_bytes + target.numel * x.item_bytes, 2 * x.item_bytes, x.dtype)


@cost(
    "aten::nll_loss_backward",
    "aten::nll_loss2d_backward",
    source="1 per target; the gradient is filled with zeros",
)
def nll_loss_backward(call: Call) -> Cost:
    """`(grad, input, target, …)`."""
    x, target = call.tensor(1), call.tensor(2)
    touched = target.numel * x.item_bytes
    return Cost(target.numel, target.num_bytes, Tensor(x.shape, x.dtype).num_bytes + touched, x.dtype)
