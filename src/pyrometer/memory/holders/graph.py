"""How large the autograd graph is that a tensor keeps alive; nothing is unpacked, recomputed or called for it."""

from __future__ import annotations

import gc
import types
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from pyrometer.memory.holders import kinds
from pyrometer.memory.holders.kinds import Kind
from pyrometer.memory.holders.order import NodeQueue
from pyrometer.memory.holders.record import RetainedGraph, SavedSite
from pyrometer.memory.private import autograd_nodes, dispatch

MAX_SITES = 10
_MAX_OBJECTS = 20_000
"""Objects behind one graph's hooks and contexts that are looked through for tensors."""

_NOT_KEPT = (types.ModuleType, nn.Module, nn.Parameter, type, torch.optim.Optimizer)
"""What a hook or a context refers to without keeping it: it lives anyway."""


def retained_graph(tensor: torch.Tensor) -> RetainedGraph:
    """The autograd graph that a tensor keeps alive, with the bytes that it keeps for backward.

    Storages are counted once, and those of parameters not at all: the model has them anyway. Where saved-tensor hooks are at
    work, as with checkpointing, what the hooks themselves keep is counted: the inputs of a checkpointed part.

    >>> w = torch.ones(10, requires_grad=True)
    >>> graph = retained_graph(w.exp().sum())
    >>> graph.state, graph.nodes, graph.bytes
    ('alive', 3, 40)
    """
    return retained_graphs([tensor])[0]


def retained_graphs(tensors: Sequence[torch.Tensor]) -> list[RetainedGraph]:
    """The same for several tensors; what graphs share is counted for the first that has it, so that the bytes add up."""
    walk = _Walk()
    with autograd_nodes.as_is():
        return [walk.graph(tensor) for tensor in tensors]


class _Walk:
    """Through the graphs of several tensors, with what was met so far."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, ...]] = {}
        self._met: dict[int, Any] = {}
        """By id, and alive, so that no id is used again."""
        self._storages: set[int] = set()
        self._kept: list[Any] = []
        self._queue = NodeQueue()

    def graph(self, tensor: torch.Tensor) -> RetainedGraph:
        """One tensor's graph, without what earlier ones have."""
        root = autograd_nodes.grad_fn_of(tensor)
        if root is None:
            return RetainedGraph(state="none")
        nodes = self._nodes(root)
        leaves = [leaf for leaf in map(autograd_nodes.leaf_of, nodes) if leaf is not None]
        self._storages.update(key for leaf in leaves for key, _ in _sizes(leaf))
        num_bytes: Counter[str] = Counter()
        count: Counter[str] = Counter()
        hooked = freed = 0
        for node in nodes:
            slots = list(self._slots(node))
            hooked += sum(slot.unpack_hook is not None for slot in slots)
            freed += sum(slot.freed for slot in slots)
            size = self._new_bytes(_saved(node, slots))
            if size:
                name = autograd_nodes.node_name(node)
                num_bytes[name] += size
                count[name] += 1
        sites = [
            SavedSite(node=name, bytes=size, count=count[name])
            for name, size in num_bytes.most_common(MAX_SITES)
        ]
        total = sum(num_bytes.values())
        return RetainedGraph(
            state="hooked" if hooked else "alive" if total else "shell",
            nodes=len(nodes),
            bytes=total,
            hooked_slots=hooked,
            freed_slots=freed,
            saved=sites,
            created_by=autograd_nodes.node_name(root),
            is_cut=self._queue.is_cut,
        )

    def _nodes(self, root: Any) -> list[Any]:
        """Every node that backward would reach and that was not met before."""
        nodes: list[Any] = []
        self._queue.push(root)
        while (popped := self._queue.pop()) is not None:
            node, depth = popped
            self._met[id(node)] = node
            nodes.append(node)
            for following in autograd_nodes.next_nodes(node):
                self._queue.push(following, depth + 1)
        return nodes

    def _slots(self, node: Any) -> Iterable[autograd_nodes.Slot]:
        key = id(type(node))
        if key not in self._names:
            self._names[key] = autograd_nodes.slot_names(type(node))
            self._kept.append(type(node))
        return autograd_nodes.slots_of(node, self._names[key])

    def _new_bytes(self, held: Iterable[Any]) -> int:
        """Bytes of storages not counted yet among tensors, and among what other objects refer to."""
        total = 0
        waiting = list(held)
        for _ in range(_MAX_OBJECTS):
            if not waiting:
                break
            one = waiting.pop()
            kind = kinds.kind_of_type(type(one))
            if kind is Kind.TENSOR:
                total += sum(self._count(*pair) for pair in _sizes(one)) if not _is_parameter(one) else 0
            elif kind is Kind.STORAGE:
                total += self._count(dispatch.storage_key(one), one.nbytes())
            elif self._is_new(one, kind):
                waiting.extend(_parts(one, kind))
        return total

    def _count(self, key: int, size: int) -> int:
        if key in self._storages:
            return 0
        self._storages.add(key)
        return size

    def _is_new(self, one: Any, kind: Kind) -> bool:
        if kind in (Kind.ATOM, Kind.OWN) or id(one) in self._met:
            return False
        self._met[id(one)] = one
        return not any(kinds.is_kind(one, known) for known in _NOT_KEPT)


def _saved(node: Any, slots: list[autograd_nodes.Slot]) -> list[Any]:
    """What a node keeps: its slots, what their hooks need, and the attributes of a context."""
    held = [slot.data for slot in slots] + [slot.unpack_hook for slot in slots]
    return [one for one in [*held, *autograd_nodes.own_attributes(node).values()] if one is not None]


def _parts(one: Any, kind: Kind) -> list[Any]:
    """What an object that a hook refers to keeps; a function's module is not its own."""
    if kind is Kind.FUNCTION:
        return [*(one.__closure__ or ()), *(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
    if kind is Kind.NODE:
        return _saved(one, list(autograd_nodes.slots_of(one)))
    if kind is Kind.SLOT:
        slot = autograd_nodes.read_slot("tensor", one)
        return [part for part in (slot.data, slot.unpack_hook) if part is not None]
    return gc.get_referents(one)


def _sizes(tensor: Any) -> list[tuple[int, int]]:
    """Key and bytes of each storage behind a tensor."""
    return [(dispatch.storage_key(storage), storage.nbytes()) for storage, _ in dispatch.storages(tensor)]


def _is_parameter(tensor: Any) -> bool:
    """Whether a tensor is a parameter or a view of one."""
    base = tensor._base  # noqa: SLF001 - a documented attribute of tensors
    return kinds.is_kind(tensor, nn.Parameter) or (base is not None and kinds.is_kind(base, nn.Parameter))
