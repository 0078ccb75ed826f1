"""Why Inductor did not fuse two nodes: the reasons that its scheduler gives to its `WhyNoFuse` objects.

`torch._inductor.scheduler.WhyNoFuse` holds the names of two nodes and is called with the reason; it then writes to the
logger `torch._inductor.scheduler.__fusion`. Turning that logger on makes Inductor print every node of every
round, so that the call itself is watched and no logger is touched. Each pair is asked about in several rounds; the
last answer counts. Only so many pairs are kept per graph, because there can be nodes² of them; the rest is counted.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from pyrometer.compiler.private.probing import Sink, Wall, replaced

MAX_PAIRS = 20_000
"""Pairs of nodes that are kept per graph while it is fused."""

MAX_TOLD = 300
"""Pairs of groups that are told per graph: those that share most."""

_FIRST = re.compile(r".*?op\d+(?=_|$)")
_ARGUMENTS = re.compile(r"\s*\(?%.*")


class _Kept:
    def __init__(self) -> None:
        self.pairs: dict[tuple[str, str], tuple[str, tuple[Any, ...]]] = {}
        self.further: Counter[str] = Counter()


class Refusals:
    """Keeps what is said while a graph is fused, until its groups are known."""

    def __init__(self, sink: Sink) -> None:
        self._wall = Wall(sink, "why nodes were not fused")
        self._by_graph: WeakKeyDictionary[Any, _Kept] = WeakKeyDictionary()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch for the length of this context."""
        from torch._inductor import scheduler

        with replaced(scheduler.WhyNoFuse, "__call__", self._around):
            yield

    def _around(self, original: Any) -> Any:
        def why(pair: Any, reason: str, *args: Any) -> Any:
            with self._wall():
                self._keep(pair, reason, args)
            return original(pair, reason, *args)

        return why

    def _keep(self, pair: Any, reason: str, args: tuple[Any, ...]) -> None:
        from torch._inductor.virtualized import V

        kept = self._by_graph.setdefault(V.graph, _Kept())
        key = (_first(pair.name1), _first(pair.name2))
        if key in kept.pairs or len(kept.pairs) < MAX_PAIRS:
            kept.pairs[key] = (reason, args)
        else:
            kept.further[without_arguments(reason)] += 1

    def taken(self, graph: Any, groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What was kept of a graph, by pairs of its final groups; it is then forgotten."""
        kept = self._by_graph.pop(graph, None) or _Kept()
        group_of = {member: index for index, group in enumerate(groups) for member in group["members"]}
        apart: dict[tuple[int, int], tuple[str, tuple[Any, ...]]] = {}
        for (first, second), reason in kept.pairs.items():
            pair = (group_of.get(first), group_of.get(second))
            if pair[0] is not None and pair[1] is not None and pair[0] != pair[1]:
                apart.pop((pair[1], pair[0]), None)
                apart[pair[0], pair[1]] = reason
        moved = [{**group["reads"], **group["writes"]} for group in groups]
        told = [
            {
                "first": groups[first]["name"],
                "second": groups[second]["name"],
                "reason": reason % args if args else reason,
                "shared_bytes": shared_bytes(moved[first], moved[second]),
            }
            for (first, second), (reason, args) in apart.items()
        ]
        told.sort(key=lambda pair: -pair["shared_bytes"])
        return {
            "not_fused": told[:MAX_TOLD],
            "reasons": dict(Counter(without_arguments(reason) for reason, _ in apart.values())),
            "only_counted": dict(kept.further),
        }


def shared_bytes(first: Mapping[str, int], second: Mapping[str, int]) -> int:
    """What both of two groups touch, from the bytes that each moves by buffer.

    >>> shared_bytes({"buf0": 100, "buf1": 40}, {"buf0": 60, "buf2": 8})
    60
    """
    return sum(min(num_bytes, second[name]) for name, num_bytes in first.items() if name in second)


def without_arguments(reason: str) -> str:
    """The reason as a kind, without what differs from pair to pair.

    >>> without_arguments("numel/rnumel mismatch (reduce) (%s, %s), (%s, %s)")
    'numel/rnumel mismatch (reduce)'
    """
    return _ARGUMENTS.sub("", reason)


def _first(name: str) -> str:
    """The first of the operations in a fused node's name; it stands for the node, since nodes are never taken apart."""
    match = _FIRST.match(name)
    return match.group() if match else name


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    try:
        from torch._inductor import scheduler
    except ImportError:
        return ["why nodes were not fused: this torch has no torch._inductor.scheduler"]
    why: Any = getattr(scheduler, "WhyNoFuse", None)
    functions = getattr(why, "__dict__", {})
    return [] if "__call__" in functions else ["why nodes were not fused: this torch does not tell it"]
