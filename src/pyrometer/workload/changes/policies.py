"""What is kept inside of a module that is computed again: nothing, or the results of expensive operators.

Keeping some results (selective checkpointing) watches every operator of the module in Python, in both passes. Where
operators are short that costs more than it saves, so every policy is measured before it is chosen.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch.utils.checkpoint import create_selective_checkpoint_contexts

Policy: TypeAlias = Literal["full", "keep-matmul", "keep-attention"]

POLICIES: tuple[Policy, ...] = get_args(Policy)

_ATTENTION = (
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
)
_MATMUL = ("mm", "addmm", "bmm", "baddbmm", "convolution", *_ATTENTION)
_KEPT: dict[Policy, tuple[str, ...]] = {"full": (), "keep-matmul": _MATMUL, "keep-attention": _ATTENTION}


@functools.cache
def kept_operators(policy: Policy) -> frozenset[str]:
    """Names of the operators whose results a policy keeps, as a recording shows them.

    >>> sorted(kept_operators("keep-matmul"))[-2:]
    ['aten.convolution.default', 'aten.mm.default']
    """
    return frozenset(str(operator) for operator in _overloads(policy))


def selective_contexts(policy: Policy) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """The contexts under which a module runs at first, and under which it is computed again."""
    if policy == "full":
        return nullcontext(), nullcontext()
    first, again = create_selective_checkpoint_contexts(list(_overloads(policy)))  # type: ignore[no-untyped-call]
    return first, again


@functools.cache
def _overloads(policy: Policy) -> tuple[Any, ...]:
    found = (getattr(torch.ops.aten, name, None) for name in _KEPT[policy])
    return tuple(packet.default for packet in found if packet is not None)
