"""From sites that grow to findings: one per container, with everything that it keeps alive."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pyrometer.memory.holders.find import find_holders
from pyrometer.memory.holders.fix import fix_for
from pyrometer.memory.holders.graph import retained_graph
from pyrometer.memory.holders.record import Holder, PinnedStorage, RetainedGraph
from pyrometer.memory.holders.view import pinned_storage
from pyrometer.memory.leaks.births import Storage, live_tensors
from pyrometer.memory.leaks.cohorts import MIN_HITS, Growth
from pyrometer.memory.leaks.ends import where_it_ends
from pyrometer.memory.private.autograd_nodes import as_is, grad_fn_of, grad_of
from pyrometer.memory.private.dispatch import storage_key, storages
from pyrometer.quantity import Bytes

MOST_SITES = 200
"""Sites whose holder is looked for; further ones, the smallest, share the finding of the same steps."""

BUDGET_S = 20.0
_MAPPINGS = ("dict", "OrderedDict", "defaultdict", "WeakKeyDictionary", "WeakValueDictionary", "UserDict")


DEEP_CHAIN = 14
"""Hops from a root to a tensor, beyond which it is probably in a linked structure."""

MOST_GRAPHS = 16
"""Of so many sites that one holder keeps, the largest autograd graph is looked for."""

_INDEX = re.compile(r"\[")


@dataclass
class Finding:
    """What one container, or one graph, keeps.

    Attributes:
        holder: who keeps it; `None` when no one was found.
        growths: the sites, the one that the holder keeps itself first.
        tensor_graph: the autograd graph behind one of the tensors.
        graph_rate: bytes per step that only autograd graphs keep.
        pinned: bytes that a view or a scalar holds without need.
        fix: what to write instead.
        nodes_per_step: by which autograd graphs grow that are never let go.
        ends_at: the line of the program that may let go what grows.
        own_grad: a tensor's `.grad` has a graph that leads back to it, as `backward(create_graph=True)` makes.
    """

    holder: Holder | None
    growths: list[Growth]
    tensor_graph: RetainedGraph | None = None
    graph_rate: float = 0.0
    pinned: PinnedStorage | None = None
    fix: str | None = None
    nodes_per_step: float = 0.0
    own_grad: bool = False
    ends_at: str | None = None

    @property
    def bytes_per_step(self) -> float:
        """Of all its sites."""
        return sum(growth.bytes_per_step for growth in self.growths)

    @property
    def period(self) -> float:
        """Steps from one leaked step to the next."""
        return min((growth.period for growth in self.growths), default=1.0)

    @property
    def graph_bytes(self) -> Bytes:
        """That the autograd graphs of one leaked step keep."""
        if self.graph_rate:
            return round(self.graph_rate * self.period)
        return self.tensor_graph.bytes if self.tensor_graph is not None else 0

    @property
    def kind(self) -> str:
        """`leak`, `cache` (grows with its keys), `slowing`, `bounded` (not full yet), `open` (may have an end) or `full`."""
        holder = self.holder
        if holder is not None and holder.maxlen is not None and holder.length is not None:
            return "full" if holder.length >= holder.maxlen else "bounded"
        if self.growths and all(growth.slowing for growth in self.growths):
            return "slowing"
        if self.ends_at is not None:
            return "open"
        return "cache" if holder is not None and self._has_keys(holder) else "leak"

    def _has_keys(self, holder: Holder) -> bool:
        """Whether a mapping got a key for each step that left something."""
        if holder.root == "lru_cache":
            return True
        steps = max((len(growth.steps) for growth in self.growths), default=0)
        enough = max(steps, MIN_HITS)
        return holder.container in _MAPPINGS and (holder.length or 0) >= enough and holder.root != "hook"


@dataclass(frozen=True)
class _Sample:
    """A survivor of a site; the newest may yet be in use."""

    growth: Growth
    storage: torch.UntypedStorage
    is_newest: bool


def findings_of(growths: Sequence[Growth], alive: Iterable[Storage]) -> list[Finding]:
    """Name who holds what grows, and put together what one holder keeps; the largest first."""
    samples = _samples(growths[:MOST_SITES], alive)
    held: list[Any] = [sample.storage for sample in samples]
    holders = find_holders(held, budget_s=BUDGET_S)
    by_site: dict[int, Holder | None] = {}
    for sample, holder in zip(samples, holders, strict=True):
        by_site[id(sample.growth)] = _better(by_site.get(id(sample.growth)), holder, sample)
    groups = _grouped(growths, by_site)
    tensors = _tensors_of(samples, by_site)
    findings = [_finding(group, by_site, tensors) for group in groups.values()]
    return sorted(findings, key=lambda finding: -finding.bytes_per_step)


def _better(known: Holder | None, holder: Holder | None, sample: _Sample) -> Holder | None:
    """Of the holders of two samples of one site, the first, unless the other says more.

    It does when it holds the tensor itself; and the newest does when the first is deep in a linked structure, whose newest
    link is nearest to who holds it all.
    """
    if known is None or holder is None or holder.held_by_graph:
        return known or holder
    if sample.is_newest:
        is_deep = len(known.chain) > DEEP_CHAIN and len(holder.chain) < len(known.chain)
        return holder if is_deep and not known.held_by_graph else known
    return holder if known.held_by_graph else known


def _samples(growths: Sequence[Growth], alive: Iterable[Storage]) -> list[_Sample]:
    """Of each site the survivor in the middle of its steps, the last one, and the newest of all."""
    by_site: dict[object, list[Storage]] = defaultdict(list)
    for storage in alive:
        if storage.died is None:
            by_site[storage.site].append(storage)
    samples = []
    for growth in growths:
        steps = set(growth.steps)
        kept = [storage for storage in by_site[growth.site] if storage.step in steps]
        chosen = [kept[len(kept) // 2], kept[-1], by_site[growth.site][-1]] if kept else []
        for storage in dict.fromkeys(chosen):
            strong = storage.get()
            if strong is not None:
                samples.append(_Sample(growth, strong, is_newest=storage is chosen[-1]))
    return samples


def _grouped(growths: Sequence[Growth], by_site: dict[int, Holder | None]) -> dict[object, list[Growth]]:
    """What belongs together: what is below the same container; without a name, what comes in the same steps.

    What nobody names joins a cycle of the same steps: it is behind it.
    """
    holders = {id(growth): by_site.get(id(growth)) for growth in growths}
    cycles = {growth.steps for growth in growths if _is_cycle(holders[id(growth)])}
    groups: dict[object, list[Growth]] = defaultdict(list)
    for growth in growths:
        holder = holders[id(growth)]
        if holder is None or not holder.path or _is_cycle(holder):
            key: object = ("cycle" if growth.steps in cycles else "nobody", growth.steps)
        else:
            key = (container_of(holder), holder.root)
        groups[key].append(growth)
    return groups


def _is_cycle(holder: Holder | None) -> bool:
    return holder is not None and holder.root == "reference cycle"


def container_of(holder: Holder) -> str:
    """The expression up to the first index or key: what grows, whatever is in it; of a frame, what keeps the frame."""
    return _INDEX.split(holder.kept_by or holder.expression or holder.name, maxsplit=1)[0]


def _tensors_of(samples: Sequence[_Sample], by_site: dict[int, Holder | None]) -> dict[int, torch.Tensor]:
    """Of each site a tensor that survives: one with a graph where there is a choice, else what the holder has itself.

    What a view was taken of lives on with it, whoever has a name for it.
    """
    older = {id(sample.growth) for sample in samples if not sample.is_newest}
    wanted = {
        storage_key(sample.storage): sample.growth
        for sample in samples
        if not sample.is_newest
        or id(sample.growth) not in older  # the newest may be whole: its step is not over
    }
    tensors: dict[int, torch.Tensor] = {}
    with as_is():
        for tensor in live_tensors():
            for storage, _ in storages(tensor):
                growth = wanted.get(storage_key(storage))
                known = None if growth is None else tensors.get(id(growth))
                if growth is not None and (
                    known is None or _says_more(tensor, known, by_site.get(id(growth)))
                ):
                    tensors[id(growth)] = tensor
    return tensors


def _says_more(tensor: torch.Tensor, known: torch.Tensor, holder: Holder | None) -> bool:
    """Whether this one of two tensors of a site is to be told of."""
    has_graph, had_graph = (grad_fn_of(each) is not None for each in (tensor, known))
    if has_graph != had_graph:
        return has_graph
    held = holder.held_elements if holder is not None else None
    return tensor.numel() == held != known.numel()


def _finding(
    group: list[Growth], by_site: dict[int, Holder | None], tensors: dict[int, torch.Tensor]
) -> Finding:
    holders = {id(growth): by_site.get(id(growth)) for growth in group}
    kept_by_graph = [
        growth for growth in group if (held := holders[id(growth)]) is not None and held.held_by_graph
    ]
    direct = [growth for growth in group if growth not in kept_by_graph]
    own = {id(growth): tensors[id(growth)] for growth in direct if id(growth) in tensors}
    graphs = {site: retained_graph(tensor) for site, tensor in list(own.items())[:MOST_GRAPHS]}
    largest = max(graphs, key=lambda site: (graphs[site].bytes, graphs[site].nodes), default=None)
    ordered = sorted(
        group,
        key=lambda growth: (
            not _is_named(holders[id(growth)]),
            growth not in direct,
            id(growth) != largest,
            -growth.bytes_per_step,
        ),
    )
    first = ordered[0]
    holder = holders[id(first)]
    graph = graphs.get(id(first))
    pinned = pinned_storage(own[id(first)]) if id(first) in own else None
    return Finding(
        holder=holder,
        growths=ordered,
        tensor_graph=graph,
        graph_rate=sum(growth.bytes_per_step for growth in kept_by_graph),
        pinned=pinned,
        fix=fix_for(holder, graph, pinned, lengthens=_lengthens(first)) or None,
        ends_at=where_it_ends(holder, container_of(holder)) if holder is not None else None,
        own_grad=any(_has_second_order(tensors[id(growth)]) for growth in group if id(growth) in tensors),
    )


def _lengthens(growth: Growth) -> bool:
    """Whether it is one tensor that is replaced by ever longer ones, or resized."""
    return growth.rule == "queued" and len(growth.steps) < MIN_HITS


def _is_named(holder: Holder | None) -> bool:
    return holder is not None and bool(holder.path)


def _has_second_order(tensor: torch.Tensor) -> bool:
    with as_is():
        grad = grad_of(tensor)
        return grad is not None and grad_fn_of(grad) is not None
