"""Putting nodes together so that what results is still without cycles."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence


def group_nodes(keys: Sequence[Hashable | None], reads: Sequence[Sequence[int]]) -> list[int]:
    """Group numbers of nodes: equal keys together, as far as no cycle arises; then the key gets another group.

    A node joins the latest group of its key unless it reads something outside that depends on that group. Ancestors are
    kept as bits of one integer per group.

    Args:
        keys: of each node; `None` for one that stays alone.
        reads: the nodes that each reads, by number; all are smaller than its own.

    >>> group_nodes(["a", "b", "a"], [[], [0], [1]])  # the second a depends on b, which depends on the first
    [0, 1, 2]
    >>> group_nodes(["a", "b", "a", "b"], [[], [], [0], [1]])
    [0, 1, 0, 1]
    """
    latest: dict[Hashable, int] = {}
    ancestors: list[int] = []
    group_of: list[int] = []
    for key, sources in zip(keys, reads, strict=True):
        feeding = {group_of[source] for source in sources}
        own = None if key is None else latest.get(key)
        above = 0
        for group in feeding:
            if group != own:
                above |= ancestors[group] | (1 << group)
        if own is None or above >> own & 1:
            own = len(ancestors)
            ancestors.append(0)
            for group in feeding:
                above |= ancestors[group] | (1 << group)
        _add_ancestors(ancestors, own, above)
        group_of.append(own)
        if key is not None:
            latest[key] = own
    return group_of


def _add_ancestors(ancestors: list[int], group: int, above: int) -> None:
    """Give a group, and all that depend on it, further ancestors."""
    if not above & ~ancestors[group]:
        return
    ancestors[group] |= above
    for other, known in enumerate(ancestors):
        if known >> group & 1:
            ancestors[other] = known | above


def topological_order(num_groups: int, edges: Mapping[tuple[int, int], object]) -> list[int]:
    """Groups so that every edge leads forward; among those that may come next, the one with the smallest number."""
    import heapq

    targets: list[list[int]] = [[] for _ in range(num_groups)]
    waiting = [0] * num_groups
    for source, target in edges:
        targets[source].append(target)
        waiting[target] += 1
    ready = [group for group in range(num_groups) if not waiting[group]]
    order = []
    while ready:
        group = heapq.heappop(ready)
        order.append(group)
        for target in targets[group]:
            waiting[target] -= 1
            if not waiting[target]:
                heapq.heappush(ready, target)
    return order
