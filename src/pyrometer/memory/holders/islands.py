"""What no name leads to: objects that only C code holds, and reference cycles that wait for the garbage collector.

As the collector does it: of each object that was not reached, the references that come from other such objects are taken off
its count. Something is left over where C code holds it: the stack of a running function (the generator of a `for` loop),
a registry, autograd. What nothing but itself and its like refers to is garbage.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import Counter
from typing import Any

from pyrometer.memory.holders import kinds
from pyrometer.memory.holders.roots import Root
from pyrometer.memory.holders.search import Search

_MAX_HOPS = 200


def unreached(everything: list[Any], search: Search) -> list[Any]:
    """The objects of the heap that no name leads to, without those who watch."""
    seen, own = search.seen, kinds.Kind.OWN
    return [one for one in everything if id(one) not in seen and search.kind_of(one) is not own]


def held_by_c(objects: list[Any], search: Search) -> list[Root]:
    """Those of the objects that have more references than can be told, as roots.

    The wanted tensors are left out: the asker holds them, and whoever else does is the answer.

    Args:
        objects: the unreached; one more list than this may hold them, the one of the whole heap.
        search: what was reached, and what is looked for.
    """
    inner = Counter(id(part) for one in objects for part in gc.get_referents(one))
    spare = _spare_count()
    found = [one for one in objects if sys.getrefcount(one) - inner[id(one)] > spare]
    return [
        Root("C-level unknown", "C", items=[(kinds.class_name(type(one)), one)])
        for one in found
        if type(one) is not types.FrameType and not wanted_by(search, one)
    ]


def wanted_by(search: Search, one: Any) -> tuple[int, ...]:
    """The numbers of the wanted tensors that an object is, or shares the storage with."""
    kind = search.kind_of(one)
    return search.targets.recognise(one, kind) if kind in (kinds.Kind.TENSOR, kinds.Kind.STORAGE) else ()


class Garbage:
    """Objects that only each other refer to: who refers to each, and which of them are wanted."""

    def __init__(self, objects: list[Any], search: Search) -> None:
        self._referrers: dict[int, Any] = {}
        self._alike: dict[int, list[Any]] = {}
        for one in objects:
            for part in gc.get_referents(one):
                self._referrers.setdefault(id(part), one)
            for index in wanted_by(search, one):
                self._alike.setdefault(index, []).append(one)

    def alike(self, index: int) -> list[Any]:
        """The objects that are the wanted tensor of a number, or share the storage with it."""
        return self._alike.get(index, [])

    def cycle_above(self, start: Any) -> tuple[list[Any], list[Any]]:
        """Who leads down to an object from the cycle that keeps it, and the cycle; both empty where there is none.

        Each piece of garbage is held by another, so that going up leads round in the end.
        """
        return _turn(start, self._referrers)


def _turn(start: Any, referrers: dict[int, Any]) -> tuple[list[Any], list[Any]]:
    way, place = [start], {id(start): 0}
    while len(way) < _MAX_HOPS:
        above = referrers.get(id(way[-1]))
        if above is None:
            break
        if id(above) in place:
            first = place[id(above)]
            ring = way[first:][::-1]
            return [*ring, *way[1:first][::-1]] if first else ring[:-1], ring
        place[id(above)] = len(way)
        way.append(above)
    return [], []


def _spare_count() -> int:
    """References that an object in two lists has while `held_by_c` counts them."""
    everything = [object()]
    objects = list(everything)
    return next(sys.getrefcount(one) for one in objects if one is not None)
