"""Where operators on the CPU allocate otherwise than their shapes tell: results that keep a larger storage.

A fake tensor's storage is as large as its shape needs. A few kernels return more: a loss that was reduced in place
keeps all of its unreduced values, and oneDNN's LSTM keeps a workspace for the backward pass. The table says how many
bytes. Where precisions are mixed, some return other dtypes than fake ones do. Each row was found by comparing fake with real
results over many operators, and is tested against the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pyrometer.memory.private.dispatch import DispatchMode
from pyrometer.quantity import Bytes

Row = Callable[[Sequence[Any], Sequence[torch.Tensor]], dict[int, Bytes]]
"""From an operator's arguments and results: the index of a result, and the bytes that its storage really has."""

PAGE = 4096
_LSTM = 2
_MEAN = 1


def _reduced(reduction_at: int) -> Row:
    """A loss whose mean or sum is a view-like scalar over the storage of all values."""

    def row(args: Sequence[Any], _results: Sequence[torch.Tensor]) -> dict[int, Bytes]:
        reduction = args[reduction_at] if len(args) > reduction_at else _MEAN
        if reduction == 0:
            return {}
        shape = torch.broadcast_shapes(args[0].shape, args[1].shape)  # type: ignore[no-untyped-call]
        return {0: shape.numel() * args[0].element_size()}

    return row


def _column_sums(args: Sequence[Any], results: Sequence[torch.Tensor]) -> dict[int, Bytes]:
    """`fold`: the result begins as large as the columns, and keeps that storage."""
    return {0: max(_nbytes(args[0]), _nbytes(results[0]))}


def _lstm_workspace(args: Sequence[Any], _results: Sequence[torch.Tensor]) -> dict[int, Bytes]:
    """What oneDNN keeps for the backward pass: gates and states of all time steps, each buffer on pages of its own.

    Args:
        args: input `[T, B, I]`, four weights, two states, reverse, batch_sizes, mode, hidden size, …, train.
    """
    inputs, mode, hidden, train = args[0], args[9], args[10], args[15]
    if mode != _LSTM or not train:
        return {}
    steps, batch, width = inputs.shape
    size = inputs.element_size()
    states, single = 2 * (steps + 1) * batch, steps * batch
    widest = max(width, hidden)
    buffers = (
        single * padded_row(4 * hidden, size) * size,
        states * padded_row(widest, size) * size,
        states * padded_row(widest, size) * size,
        states * padded_row(widest, 4) * 4,
        states * hidden * 4,
        states * hidden * 4,
        single * padded_row(hidden, size) * size,
    )
    return {3: sum(-(-buffer // PAGE) * PAGE for buffer in buffers)}


def padded_row(row: int, size: int) -> int:
    """The length of a row as oneDNN lays it out: whole cache lines, and never a multiple of 256 elements."""
    line = 64 // size
    rounded = -(-row // line) * line
    return rounded + line if rounded % 256 == 0 else rounded


def _nbytes(tensor: torch.Tensor) -> Bytes:
    return tensor.numel() * tensor.element_size()


CPU_STORAGES: dict[str, Row] = {
    "aten.mse_loss.default": _reduced(2),
    "aten.smooth_l1_loss.default": _reduced(2),
    "aten.soft_margin_loss.default": _reduced(2),
    "aten.binary_cross_entropy.default": _reduced(3),
    "aten.col2im.default": _column_sums,
    "aten.mkldnn_rnn_layer.default": _lstm_workspace,
}


def _statistics(weight_at: int) -> Callable[[Sequence[Any]], dict[int, torch.dtype]]:
    """Mean and deviation of low-precision inputs with float32 weights are float32."""

    def row(args: Sequence[Any]) -> dict[int, torch.dtype]:
        weight = args[weight_at]
        mixed = weight is not None and weight.dtype == torch.float32 != args[0].dtype
        return {1: torch.float32, 2: torch.float32} if mixed else {}

    return row


def _group_norm_backward(args: Sequence[Any]) -> dict[int, torch.dtype]:
    """The gradient of the input is as precise as that input."""
    return {0: args[1].dtype}


CPU_DTYPES: dict[str, Callable[[Sequence[Any]], dict[int, torch.dtype]]] = {
    "aten.native_layer_norm.default": _statistics(2),
    "aten.native_group_norm.default": _statistics(1),
    "aten.native_group_norm_backward.default": _group_norm_backward,
}
"""Where kernels mix precisions, as under autocast: the dtypes that they return, where a fake result has another."""


class CpuStorages(DispatchMode):
    """Give results without data the storages and dtypes that the kernels of the CPU would have returned.

    It stands between the recorder, which sees what leaves here, and the mode that makes fake tensors.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        dtypes = CPU_DTYPES.get(str(func))
        if dtypes is not None and args[0].device.type == "cpu":
            wanted = dtypes(args)
            result = tuple(
                tensor if tensor is None else tensor.to(wanted.get(at, tensor.dtype))
                for at, tensor in enumerate(result)
            )
        row = CPU_STORAGES.get(str(func))
        if row is not None:
            results = (result,) if isinstance(result, torch.Tensor) else tuple(result)
            if all(tensor.device.type == "cpu" for tensor in results):
                for at, nbytes in row(args, results).items():
                    results[at].untyped_storage().resize_(nbytes)
        return result
