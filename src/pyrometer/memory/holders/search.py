"""One walk over everything that lives, from where names are to the wanted tensors.

Backwards, from a tensor to its referrers, every hop costs a scan of the whole heap, and misses what the garbage collector does
not see. Forwards each object is visited once, hundreds at a time in C, and what the collector cannot look through (autograd
graphs, gradients, numpy arrays, the variables of running frames) is looked through by code of our own. Autograd graphs come
last: what is found before is held by something else too.

Parents are not noted object by object, but as the number of the batch in which an object was first met; the few that stand
on a path are then found by looking through their batch again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrometer.memory.holders import kinds
from pyrometer.memory.holders.kinds import Kind
from pyrometer.memory.holders.order import NodeQueue
from pyrometer.memory.holders.roots import Root
from pyrometer.memory.holders.targets import Targets
from pyrometer.memory.private import autograd_nodes

BATCH = 256
"""Objects per batch: large enough that the loop around it does not show, small enough to look through again."""

MAX_HITS = 32
"""References noted per wanted tensor; the best of them is named."""

_NOWHERE = -1
_CLOSED_TO_US = (Kind.ATOM, Kind.OWN)


@dataclass(frozen=True)
class Link:
    """An owner with its named parts, where the collector does not know them."""

    owner: Any
    parts: list[tuple[str, Any]]


@dataclass(frozen=True)
class Hit:
    """Someone refers to a wanted tensor, or to another one with its storage."""

    tensor: Any
    batch: int
    through_graph: bool


@dataclass(frozen=True)
class Hop:
    """One step of a path: an owner, and what it calls its part where that is known."""

    owner: Any
    label: str | None


class Search:
    """The walk; `hits` holds what was found, by number of the wanted tensor.

    Args:
        targets: what is looked for.
        ignored: objects that are treated as if they were not there.
        deadline_s: instant of `clock` at which the walk stops.
        clock: seconds; for tests.
    """

    def __init__(
        self,
        targets: Targets,
        ignored: Iterable[Any],
        deadline_s: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.targets = targets
        self.hits: dict[int, list[Hit]] = {}
        self.batches: list[list[Any] | Link] = []
        self.is_out_of_time = False
        self._well_held: set[int] = set()
        self._ignored = dict.fromkeys(map(id, ignored), _NOWHERE)
        self._first: dict[int, int] = dict(self._ignored)
        self._kinds: dict[int, Kind] = {}
        self._types: list[type] = []  # an id is only good as long as its object lives
        self._next: list[Any] = []
        self._closed: list[Any] = []
        self._late: list[Any] = []
        self._graph: list[Any] = []
        self._nodes = NodeQueue()
        self._spare_roots = autograd_nodes.max_depth()
        self._through_graph = False
        self._deadline_s, self._clock = deadline_s, clock

    def kind_of(self, one: Any) -> Kind:
        """What an object is; each type is looked at once."""
        key = id(type(one))
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = kinds.kind_of_type(type(one))
            self._types.append(type(one))
        return kind

    @property
    def is_settled(self) -> bool:
        """Whether each tensor has a holder that is more than a variable of the moment."""
        return len(self._well_held) == self.targets.count

    @property
    def seen(self) -> dict[int, int]:
        """Ids of all objects met so far, with the number of the batch that refers to them."""
        return self._first

    def walk(self, roots: Iterable[Root]) -> None:
        """Visit all that hangs on roots, except what only autograd graphs hold.

        Variables that are tensors themselves come after everything else: whoever else holds the tensor is the better answer.
        """
        roots = list(roots)
        for plain_variables in (False, True):
            for root in roots:
                tensors = [item for item in root.items if self.kind_of(item[1]) is Kind.TENSOR]
                others = [item for item in root.items if self.kind_of(item[1]) is not Kind.TENSOR]
                self._link(root, tensors if plain_variables else others)
            self._drain()
        self._next, self._late = self._late, []
        self._drain()

    def close_off(self) -> None:
        """From here on, what was met so far counts as having a name, and is not part of any cycle that has none."""
        self._ignored = dict.fromkeys(self._first, _NOWHERE)

    def walk_graphs(self) -> None:
        """Visit what the autograd graphs hold of tensors met so far.

        Where nodes that were looked at are freed one inside the other, tensors may be chained to each other too, so that only as
        many have their graph looked at as one chain may have nodes. Lists are met from their end, the newest first.
        """
        self._through_graph = True
        waiting, self._graph = self._graph, []
        tensors = [one for one in waiting if self.kind_of(one) is Kind.TENSOR and not one.is_leaf]
        self._closed = tensors[: self._spare_roots]
        for node in (one for one in waiting if self.kind_of(one) is Kind.NODE):
            self._nodes.push(node)
        self._drain()
        while not self.is_out_of_time and self._open_nodes():
            self._drain()
        self._through_graph = False

    def back_to(self, tensor: Any) -> list[Hop]:
        """The way from a tensor through its own autograd graph back to itself; empty where there is none."""
        if self.kind_of(tensor) is not Kind.TENSOR or tensor.is_leaf:
            return []
        inner = Search(Targets([tensor]), (), self._deadline_s, self._clock)
        inner._first.update(self._ignored)
        inner.walk([Root("reference cycle", "itself", items=[("itself", tensor)])])
        inner.walk_graphs()
        ways = [inner.path(hit)[1:] for hit in inner.hits.get(0, []) if hit.tensor is tensor]
        inner.forget()
        return min((way for way in ways if way), key=len, default=[])

    def forget(self) -> None:
        """Let go of everything that was met; what was looked at is then as free to die as before."""
        for kept in (
            self.batches,
            self._next,
            self._closed,
            self._late,
            self._graph,
            self._types,
            self._nodes,
        ):
            kept.clear()
        for table in (self.hits, self._first, self._kinds):
            table.clear()

    def path(self, hit: Hit) -> list[Hop]:
        """The way from a root to a hit, root first."""
        hops: list[Hop] = []
        child, number = hit.tensor, hit.batch
        while number >= 0:
            hop = self._parent(child, number)
            hops.append(hop)
            if type(hop.owner) is Root:
                break
            child, number = hop.owner, self._first.get(id(hop.owner), _NOWHERE)
        return hops[::-1]

    def _parent(self, child: Any, number: int) -> Hop:
        batch = self.batches[number]
        if isinstance(batch, Link):
            label = next((label for label, part in batch.parts if part is child), None)
            return Hop(batch.owner, label)
        for owner in batch:
            if any(part is child for part in gc.get_referents(owner)):
                return Hop(owner, None)
        for owner in batch:  # up to Python 3.12 an object's attributes move when its __dict__ is asked for
            if any(value is child for value in kinds.attributes_of(owner).values()):
                return Hop(owner, None)
        return Hop(Root("C-level unknown", "what let go of it meanwhile"), "holder")

    def set_aside(self, values: Iterable[Any]) -> None:
        """Visit what is not the user's, so that it is not taken for something that nobody names; it holds nothing."""
        before = self.hits, self._well_held
        self.hits, self._well_held = {}, set()
        self._next.extend(value for value in values if id(value) not in self._first)
        self._first.update((id(value), _NOWHERE) for value in self._next)
        self._drain()
        self.hits, self._well_held = before

    def _drain(self) -> None:
        """Visit everything that waits, and what it leads to, until each tensor has a holder that is more than a variable."""
        while self._next or self._closed:
            if self.is_settled and not self._through_graph:
                self._next, self._closed, self._late = [], [], []
                return
            level, self._next = self._next, []
            closed, self._closed = self._closed, []
            for start in range(0, max(len(level), len(closed)), BATCH):
                if self._clock() > self._deadline_s:
                    self.is_out_of_time, self._next, self._closed = True, [], []
                    return
                for owner in closed[start : start + BATCH]:
                    self._link(owner, self._parts(owner))
                batch = level[start : start + BATCH]
                if batch:
                    self.batches.append(batch)
                    self._meet(gc.get_referents(*batch), len(self.batches) - 1)

    def _open_nodes(self) -> bool:
        """Look at some of the nodes that wait; whether there were any."""
        for count in range(BATCH):
            popped = self._nodes.pop()
            if popped is None:
                return count > 0
            node, depth = popped
            for following in autograd_nodes.next_nodes(node):
                self._nodes.push(following, depth + 1)
            self._link(node, _node_parts(node))
            self.batches.append([node])
            self._meet(gc.get_referents(node), len(self.batches) - 1)
        return True

    def _link(self, owner: Any, parts: list[tuple[str, Any]]) -> None:
        if parts:
            self.batches.append(Link(owner, parts))
            self._meet([part for _, part in parts], len(self.batches) - 1)

    def _meet(self, parts: Iterable[Any], number: int) -> None:
        """Note what is new, note hits, and let what refers to more wait for its turn."""
        first, wanted, known, waiting = self._first, self.targets.by_id, self._kinds, self._next
        is_tracked, plain = gc.is_tracked, Kind.PLAIN
        for part in parts:
            key = id(part)
            if key in first:
                if key in wanted:
                    self._note(part, number)
                continue
            kind = known.get(id(type(part)))
            if kind is None:
                kind = self.kind_of(part)
            if kind is plain:
                if is_tracked(part):
                    first[key] = number
                    waiting.append(part)
            elif kind not in _CLOSED_TO_US:
                self._meet_special(part, kind, number)

    def _meet_special(self, part: Any, kind: Kind, number: int) -> None:
        if kind is Kind.FUNCTION and kinds.is_own_file(part.__code__.co_filename):
            return
        self._first[id(part)] = number
        if kind is Kind.OPTIMIZER:
            self._late.append(part)
            return
        if kind in (Kind.TENSOR, Kind.STORAGE) and self.targets.recognise(part, kind):
            self._note(part, number)
        if kind is Kind.NODE and self._through_graph:
            self._nodes.push(part)
        elif kind in (Kind.TENSOR, Kind.NODE) and not self._through_graph:
            self._graph.append(part)
        if kind in (Kind.TENSOR, Kind.ARRAY, Kind.SLOT):
            self._closed.append(part)
        if kind is not Kind.NODE:
            self._next.append(part)

    def _parts(self, owner: Any) -> list[tuple[str, Any]]:
        """What the collector does not see of an object."""
        kind = self.kind_of(owner)
        if kind is Kind.ARRAY:
            return _array_parts(owner)
        if kind is Kind.SLOT:
            return _slot_parts(autograd_nodes.read_slot("tensor", owner))
        gradient = autograd_nodes.grad_of(owner)
        node = self._node_of(owner) if self._through_graph else None
        return [(name, part) for name, part in (("grad", gradient), ("grad_fn", node)) if part is not None]

    def _node_of(self, tensor: Any) -> Any:
        if tensor.is_leaf or self._spare_roots == 0:
            return None
        if self._spare_roots is not None:
            self._spare_roots -= 1
        return autograd_nodes.grad_fn_of(tensor)

    def _note(self, tensor: Any, number: int) -> None:
        batch = self.batches[number]
        is_variable = type(batch) is Link and type(batch.owner) is Root
        for index in self.targets.by_id[id(tensor)]:
            if not is_variable:
                self._well_held.add(index)
            found = self.hits.setdefault(index, [])
            if len(found) < MAX_HITS:
                found.append(Hit(tensor, number, self._through_graph))


def _array_parts(array: Any) -> list[tuple[str, Any]]:
    """What a numpy array looks into, and the objects that it consists of."""
    base = np.ndarray.base.__get__(array)
    parts = [] if base is None else [("base", base)]
    if np.ndarray.dtype.__get__(array).kind == "O":
        plain = np.ndarray.view(array, np.ndarray).ravel()
        parts += [("[…]", element) for element in plain.tolist()]
    return parts


def _node_parts(node: Any) -> list[tuple[str, Any]]:
    """What a node of an autograd graph saved, its leaf, and the nodes that follow it."""
    parts: list[tuple[str, Any]] = []
    for slot in autograd_nodes.slots_of(node):
        parts += _slot_parts(slot)
    leaf = autograd_nodes.leaf_of(node)
    if leaf is not None:
        parts.append(("leaf", leaf))
    return parts + [("next", following) for following in autograd_nodes.next_nodes(node)]


def _slot_parts(slot: autograd_nodes.Slot) -> list[tuple[str, Any]]:
    parts = ((f"saved {slot.name}", slot.data), ("unpack hook", slot.unpack_hook))
    return [(name, part) for name, part in parts if part is not None]
