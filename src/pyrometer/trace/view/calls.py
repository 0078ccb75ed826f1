"""The call tree as it is drawn: small nodes put together where there are too many, so that sums stay exact."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.analysis.call_tree import call_tree
from pyrometer.trace.program.merged import merged
from pyrometer.trace.trace import RankTrace

MOST_NODES = 12_000
"""Nodes of the call tree that a page draws."""


def find_calls(trace: RankTrace, most: int = MOST_NODES) -> pl.DataFrame:
    """The call tree with at most so many nodes, as `call_tree` gives it; every thread always remains or is in `(other)`."""
    tree = merged(trace)
    size = len(tree.parent)
    if size <= most:
        return call_tree(trace)
    share = np.maximum(
        tree.total_ns / max(int(tree.total_ns[0]), 1), tree.device_ns / max(int(tree.device_ns[0]), 1)
    )
    largest = np.sort(share)[::-1]
    wanted = most  # kept nodes; each may need an (other) beside it
    while wanted > 1:
        least = float(np.nextafter(largest[wanted], 2.0))  # above the first that is left out
        rows = call_tree(trace, min_share=min(least, 1.0))
        if rows.height <= most:
            return rows
        wanted = wanted * 3 // 4
    return call_tree(trace, min_share=1.0)
