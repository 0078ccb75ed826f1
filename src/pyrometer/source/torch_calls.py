"""What functions of torch return."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from pyrometer.source.called import Called
from pyrometer.source.knowledge import instance_of
from pyrometer.source.torch_names import (
    FACTORIES,
    HOST_FUNCTIONS,
    INDIFFERENTIABLE,
    MODULE_FACTORIES,
    NUMERIC,
    OPERATIONS,
    REDUCING,
    SEQUENCES,
    TAKING_LISTS,
)
from pyrometer.source.value import (
    HOST,
    LEAF,
    MODULE,
    TENSOR,
    TENSORS,
    UNKNOWN,
    Kind,
    Value,
)
from pyrometer.source.words import words

if TYPE_CHECKING:
    from pyrometer.source.module import Module

OPERATION_HOMES = frozenset(
    [
        "torch",
        "torch.Tensor",
        "torch.nn.functional",
        "torch.functional",
        "torch._C._nn",
        "torch._C._VariableFunctions",
    ]
)
NUMERIC_HOMES = frozenset(["torch.linalg", "torch.special", "torch.fft"])

OF_SIZES = words(
    """
    arange bartlett_window blackman_window empty eye full hamming_window hann_window kaiser_window linspace logspace ones
    rand randint randn randperm range tril_indices triu_indices zeros
    """
)
"""Factories that are told sizes and numbers: without `device=` what they make lies in the host's memory."""
OF_NUMBERS = frozenset(["tensor", "as_tensor", "scalar_tensor"])
"""Factories that copy what they are given."""
NUMBERS = frozenset([Kind.HOST, Kind.CONTAINER, Kind.ARRAY])
DEFAULT_DEVICE = re.compile(r"set_default_(device|tensor_type)|with\s+(torch\.)?device\b|DeviceContext")
"""What changes where factories put tensors."""


def torch_call(called: Called, dotted: str) -> Value:
    """A call of something of torch, by its dotted name."""
    home, _, last = dotted.rpartition(".")
    if home == "torch" and last in FACTORIES:
        return made(called, last)
    if home == "torch" and last in HOST_FUNCTIONS:
        return HOST
    if home in OPERATION_HOMES:
        found = operation(called, last, called.inputs)
        if found.kind is not Kind.UNKNOWN:
            return found
    if home in NUMERIC_HOMES:
        called.claim_first()
        return called.frame.tensor(*called.inputs) if last in NUMERIC else UNKNOWN
    return other_call(called, dotted)


def other_call(called: Called, dotted: str) -> Value:
    """Functions of torch with a meaning of their own."""
    if dotted in MODULE_FACTORIES:
        if called.first.kind is Kind.MODULE:
            return called.first
        return UNKNOWN if dotted == "torch.compile" else MODULE
    if dotted == "torch.autograd.grad":
        return TENSORS
    if dotted in {"torch.Tensor.item", "torch.Tensor.tolist"}:
        return HOST
    if dotted == "torch.utils.checkpoint.checkpoint" and called.first.kind is Kind.MODULE:
        return Value(Kind.TENSOR, not called.frame.grad_off)
    return instance_of(dotted)


def made(called: Called, factory: str) -> Value:
    """A tensor that a factory makes: a leaf where it is to require gradients."""
    if called.said("requires_grad") is True:
        return LEAF
    device = called.device()
    if factory == "from_numpy":
        return Value(Kind.TENSOR, device="cpu")
    if factory.endswith("_like") and device is None and called.module.keyword(called.node, "device") is None:
        device = called.first.device
    if factory == "as_tensor" and called.first.is_tensor:
        return called.frame.tensor(called.first, device=device)
    if device is None and lies_on_host(called, factory):
        device = "cpu"
    return Value(Kind.TENSOR, device=device) if device else TENSOR


def lies_on_host(called: Called, factory: str) -> bool:
    """Whether nothing says another device: no argument, no tensor that it is made of, and no default that the file changes."""
    if not (factory in OF_SIZES or (factory in OF_NUMBERS and called.first.kind in NUMBERS)):
        return False
    says = None in called.keywords or "device" in called.keywords
    return not says and not _changes_default(called.module)


@lru_cache(maxsize=4)
def _changes_default(module: Module) -> bool:
    return DEFAULT_DEVICE.search(module.text) is not None


def operation(called: Called, name: str, inputs: list[Value]) -> Value:
    """An operation on tensors by name, the first of the inputs being what it is applied to."""
    name = name.removesuffix("_")
    if inputs and name not in TAKING_LISTS and (name in OPERATIONS or name in REDUCING or name in SEQUENCES):
        called.frame.claim(inputs[0])
    if name in OPERATIONS:
        result = called.frame.tensor(*inputs)
        return result if name not in INDIFFERENTIABLE else Value(Kind.TENSOR, device=result.device)
    if name in REDUCING:
        return reduced(called, inputs)
    if name in SEQUENCES:
        result = called.frame.tensor(*inputs)
        return Value(Kind.TENSORS, result.graph, result.device)
    return UNKNOWN


def reduced(called: Called, inputs: list[Value]) -> Value:
    """`max(x)` is one tensor, as is `max(x, y)` of two; `max(x, dim)` is a pair of values and indices."""
    result = called.frame.tensor(*inputs)
    others = inputs[1:]
    if not others or (others[0].is_tensor and not called.keywords):
        return result
    if others[0].kind is Kind.UNKNOWN and not called.keywords:
        return UNKNOWN  # It may be a tensor or a dimension.
    indices = Value(Kind.TENSOR, device=result.device)
    return Value(Kind.TENSORS, result.graph, result.device, items=(result, indices))
