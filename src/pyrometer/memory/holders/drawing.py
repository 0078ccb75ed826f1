"""A reference cycle as its user would draw it."""

from __future__ import annotations

import types
from typing import Any

import msgspec
import torch

from pyrometer.memory.holders import containers, kinds
from pyrometer.memory.holders.naming import BOUND, read_path, to_holder
from pyrometer.memory.holders.owners import hop_text, type_text
from pyrometer.memory.holders.record import Holder
from pyrometer.memory.holders.roots import Root
from pyrometer.memory.holders.search import Hop


def describe_cycle(owners: list[Any], ring: list[Any], tensor: Any) -> Holder:
    """The holder of what only a reference cycle keeps.

    Args:
        owners: from the cycle down to the tensor, each holding the next.
        ring: the cycle, each holding the next and the last the first.
        tensor: what is held.
    """
    start = max((index for index, owner in enumerate(owners) if _has_name(owner)), default=0)
    held = to_holder(read_path(_hops(owners[start:]), tensor, stop_at_graph=False), through_graph=False)
    text = cycle_text(ring)
    return msgspec.structs.replace(
        held,
        path=f"{held.path}, in the cycle {text}",
        root="reference cycle",
        chain=[*held.chain, f"cycle: {text}"],
    )


def describe_graph_cycle(ring: list[Hop], below: list[Hop]) -> Holder:
    """The holder of what hangs in an autograd graph that keeps itself alive; the garbage collector cannot free it.

    Args:
        ring: from a tensor through its graph back to it.
        below: from that tensor down to what is held; empty where that is the tensor itself.
    """
    text = " → ".join([*(_graph_hop(hop) for hop in ring if _has_name(hop.owner)), type_text(ring[0].owner)])
    chain = [hop_text(hop.owner, hop.label) for hop in below]
    return Holder(
        path=f"an autograd graph that holds itself: {text}",
        name="an autograd graph that holds itself",
        root="reference cycle",
        held_by_graph=True,
        chain=[*chain, f"cycle: {text}"],
    )


def _graph_hop(hop: Hop) -> str:
    text = type_text(hop.owner)
    if hop.label is None:
        return text
    return f"{text}.{hop.label}" if kinds.is_kind(hop.owner, torch.Tensor) else f"{text} ({hop.label})"


def cycle_text(ring: list[Any]) -> str:
    """A cycle as its user would draw it: `Trainer.callback → Callback.trainer → Trainer`."""
    starts = [index for index, one in enumerate(ring) if _has_name(one)] or [0]
    turned = ring[starts[0] :] + ring[: starts[0]]
    starts = [start - starts[0] for start in starts]
    parts = []
    for start, end in zip(starts, [*starts[1:], len(turned)], strict=True):
        after = turned[end % len(turned)]
        read = read_path(_hops(turned[start:end]), after, stop_at_graph=False)
        parts.append(to_holder(read, through_graph=False).path)
    return " → ".join([*parts, type_text(turned[0])])


def _has_name(one: Any) -> bool:
    """Whether something is more than a hop inside of another."""
    nameless = (dict, types.CellType, types.TracebackType, *BOUND, *containers.SEQUENCES)
    return not any(kinds.is_kind(one, known) for known in nameless)


def _hops(owners: list[Any]) -> list[Hop]:
    """A path that begins in the middle, at an object that goes by the name of its class."""
    label = type_text(owners[0])
    root = Root("reference cycle", label, items=[(label, owners[0])])
    return [Hop(root, label), *(Hop(owner, None) for owner in owners)]
