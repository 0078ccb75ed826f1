"""What torch says of an operator: its name, what it writes to, and whether it is made of others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from pyrometer.dataflow.looking import has_memory

OVERWRITING = frozenset(
    {
        "aten::copy_",
        "aten::fill_",
        "aten::zero_",
        "aten::normal_",
        "aten::uniform_",
        "aten::random_",
        "aten::bernoulli_",
    }
)
"""Operators that read nothing of what they write over."""


def written(operator: Any, args: Sequence[Any], named: dict[str, Any]) -> list[torch.Tensor]:
    """The arguments that an operator writes to."""
    found: list[Any] = []
    for position, name in _mutable(operator):
        argument = args[position] if position < len(args) else named.get(name)
        found += argument if isinstance(argument, (list, tuple)) else [argument]
    return [tensor for tensor in found if has_memory(tensor)]


@cache
def _mutable(operator: Any) -> tuple[tuple[int, str], ...]:
    return tuple(
        (position, argument.name)
        for position, argument in enumerate(operator._schema.arguments)  # noqa: SLF001 - part of torch.library's documentation
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def is_overwritten(operator: Any, tensor: torch.Tensor) -> bool:
    """Whether nothing is left of what was in the whole memory of a written argument."""
    whole = tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()
    return whole and name_of(operator) in OVERWRITING


RECURRENT = frozenset({"aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"})


@cache
def is_composite(operator: Any) -> bool:
    """Whether torch makes an operator of others; whole recurrences count as one."""
    return name_of(operator) not in RECURRENT and bool(operator._can_decompose())  # noqa: SLF001


@cache
def name_of(operator: Any) -> str:
    """An operator with its namespace and without its overload.

    >>> name_of(torch.ops.aten.pow.Tensor_Scalar)
    'aten::pow'
    """
    return str(operator.name()).partition(".")[0]
