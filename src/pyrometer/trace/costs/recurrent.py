"""Recurrent layers: the matrix products of all their steps, and the gates."""

from __future__ import annotations

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor

SOURCE = "2 × weights × steps × batch; gates left out"


def _layers(x: Tensor, weights: tuple[Tensor, ...]) -> Cost:
    """Every weight matrix meets every step of every sequence once: `(gates · hidden, inputs)`."""
    matrices = [weight for weight in weights if len(weight.shape) == 2]
    if len(x.shape) not in {2, 3} or not matrices:
        raise NotRecordedError("the weights")
    steps = x.numel // max(x.shape[-1], 1)
    gates = 4
    hidden = matrices[-1].shape[0] // gates
    read = x.num_bytes + sum(weight.num_bytes for weight in weights)
    flop = 2 * steps * sum(matrix.numel for matrix in matrices)
    return Cost(flop, read, steps * hidden * x.item_bytes, x.dtype, "matrix")


@cost("aten::lstm", source=SOURCE, wraps=True)
def lstm(call: Call) -> Cost:
    """`(input, hidden states, weights, …)`."""
    return _layers(call.tensor(0), call.several(2))


@cost("aten::_cudnn_rnn", "aten::_thnn_fused_lstm_cell", source=SOURCE, wraps=True)
def cudnn_rnn(call: Call) -> Cost:
    """`(input, weights, …)`."""
    return _layers(call.tensor(0), call.several(1))


@cost("aten::mkldnn_rnn_layer", source=SOURCE)
def mkldnn_layer(call: Call) -> Cost:
    """`(input, weight_ih, weight_hh, bias_ih, bias_hh, …)`."""
    return _layers(call.tensor(0), (call.tensor(1, dims=2), call.tensor(2, dims=2)))


@cost("aten::mkldnn_rnn_layer_backward", source="twice the forward's")
def mkldnn_layer_backward(call: Call) -> Cost:
    """The same arguments first."""
    forward = _layers(call.tensor(0), (call.tensor(1, dims=2), call.tensor(2, dims=2)))
    return forward._replace(flop=2 * forward.flop, bytes_written=forward.bytes_read)
