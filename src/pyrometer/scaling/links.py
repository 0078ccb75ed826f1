"""What a collective takes on links with latency alpha and inverse bandwidth beta.

Rings and trees as in Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH" (2005); a library
takes whichever is faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pyrometer.quantity import Bytes, Seconds
from pyrometer.scaling.record import LinkFit, Links, Operation

Measured = tuple[Operation, Bytes, Seconds]
"""A collective among the ranks that were measured."""


def hops(operation: Operation, ranks: int) -> int:
    """Messages one after the other in a ring.

    >>> hops("all_reduce", 4), hops("all_gather", 4)
    (6, 3)
    """
    return (2 if operation == "all_reduce" else 1) * (ranks - 1)


def wire_bytes(operation: Operation, size: Bytes, ranks: int) -> float:
    """Bytes that each rank sends for a message of `size`."""
    return hops(operation, ranks) * size / ranks


def fit(measured: Sequence[Measured], ranks: int) -> LinkFit:
    """Alpha and beta, both at least 0, with the least relative error: of all together, and of each kind of collective.

    A gather that a library builds otherwise than as a ring takes as long as an all-reduce; one fit for both would split the difference.

    >>> exact = [("all_reduce", size, 2e-5 * 2 + size * 1e-9) for size in (1_000, 100_000, 10_000_000)]
    >>> found = fit(exact, 2)
    >>> round(found.alpha_s * 1e6, 3), round(found.bandwidth / 1e9, 3)
    (20.0, 1.0)
    """
    own: dict[Operation, LinkFit] = {}
    for operation in {operation for operation, *_ in measured}:
        own[operation] = _fit([one for one in measured if one[0] == operation], ranks)
    whole = _fit(measured, ranks)
    return LinkFit(
        alpha_s=whole.alpha_s,
        beta_s=whole.beta_s,
        error=float(np.median([each.error for each in own.values()])),
        by_operation=dict(sorted(own.items())),
    )


def _fit(measured: Sequence[Measured], ranks: int) -> LinkFit:
    from scipy.optimize import nnls  # slow to import, and the ranks that measure never need it

    terms = np.array(
        [[hops(operation, ranks), wire_bytes(operation, size, ranks)] for operation, size, _ in measured]
    )
    took = np.array([seconds for *_, seconds in measured])
    (alpha, beta), _ = nnls(terms / took[:, None], np.ones_like(took))
    told = terms @ np.array([alpha, beta])
    return LinkFit(alpha_s=float(alpha), beta_s=float(beta), error=float(np.median(np.abs(told / took - 1))))


def collective_s(operation: Operation, size: Bytes, ranks: int, links: Links) -> Seconds:
    """What a message takes among so many ranks: a ring, or a tree where that is faster.

    Args:
        operation: which collective.
        size: of the whole message.
        ranks: that take part; beyond one machine the slower link carries the ring.
        links: latency and bandwidth.
    """
    if ranks < 2:
        return 0.0
    per_machine = links.ranks_per_machine or ranks
    machines = math.ceil(ranks / per_machine)
    inside, outer = links.inside.of(operation), (links.between or links.inside).of(operation)
    beta = inside.beta_s if machines == 1 else max(inside.beta_s, outer.beta_s)
    rounds = 2 if operation == "all_reduce" else 1
    crossing = 0 if machines == 1 else machines
    ring_alpha = rounds * ((ranks - 1 - crossing) * inside.alpha_s + crossing * outer.alpha_s)
    ring = max(0.0, ring_alpha) + wire_bytes(operation, size, ranks) * beta
    depth = math.ceil(math.log2(min(ranks, per_machine)))
    outer_depth = math.ceil(math.log2(machines))
    tree_alpha = rounds * (depth * inside.alpha_s + outer_depth * outer.alpha_s)
    tree = tree_alpha + rounds * size * beta
    return min(ring, tree) if operation in {"all_reduce", "broadcast"} else ring
