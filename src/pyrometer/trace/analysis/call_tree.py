"""The call tree, merged by path: what a flame graph or an icicle draws, and what a folded stack lists."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.errors import InputError
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.program.merged import Merged, merged
from pyrometer.trace.program.rollup import gather_into
from pyrometer.trace.rows import IntArray, distinct
from pyrometer.trace.trace import RankTrace

OTHER = "(other)"


@analysis("call_tree")
def call_tree(trace: RankTrace, *, min_share: float = 0.0) -> pl.DataFrame:
    """Call tree merged by path: thread, Python, module, operator, runtime call, kernel; with sums that are exact.

    Args:
        trace: one rank.
        min_share: nodes that hold less than this share both of all host time and of all device time are put together
            into one node `(other)` of kind `other` per parent, so that all sums stay as they are.

    Returns:
        `node, parent, name, kind, calls, total_ns, self_ns, device_ns, device_self_ns, depth`; node 0 is the root, whose parent is null,
        and a parent comes before its children. `total_ns` and `self_ns` are host time: `total_ns` of a node is its
        `self_ns` plus the `total_ns` of its children. `device_ns` is work that was launched at or below the node, and
        `device_self_ns` that of the node itself, which is a kernel, copy or fill. Threads are nodes below the root; device
        work that names no launch has a node of its own there.

    Raises:
        InputError: `min_share` is not a share.
    """
    if not 0 <= min_share <= 1:
        raise InputError(f"min_share={min_share}: a share lies between 0 and 1; 0 keeps every node")
    tree = merged(trace)
    host, device = tree.total_ns, tree.device_ns
    large = (host >= min_share * max(int(host[0]), 1)) | (device >= min_share * max(int(device[0]), 1))
    large[0] = True
    return _table(tree, large) if min_share else _table(tree, np.ones(len(host), bool))


def _table(tree: Merged, kept: np.ndarray) -> pl.DataFrame:
    """The kept nodes, and one for all that is cut off below each; what is below a small node is small itself."""
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    cut = np.flatnonzero(~kept & kept[np.maximum(tree.parent, 0)])
    mothers = distinct(tree.parent[cut])
    num_kept, num_all = int(kept.sum()), int(kept.sum()) + len(mothers)
    place = np.full(len(kept), -1, np.int64)
    place[mothers] = np.arange(num_kept, num_all)

    def sums(values: IntArray) -> IntArray:
        return gather_into(np.zeros(num_all, np.int64), place[tree.parent[cut]], values[cut])[num_kept:]

    total = sums(tree.total_ns)
    parent = np.concatenate([number[tree.parent[kept]], number[mothers]])
    parent[0] = -1
    return pl.DataFrame(
        {
            "node": pl.Series(np.arange(num_all), dtype=pl.Int32),
            "parent": pl.Series(parent, dtype=pl.Int32).set(pl.Series(parent < 0), None),
            "name": tree.name.filter(pl.Series(kept)).extend_constant(OTHER, len(mothers)),
            "kind": tree.kind.filter(pl.Series(kept)).extend_constant("other", len(mothers)),
            "calls": np.concatenate([tree.calls[kept], sums(tree.calls)]),
            "total_ns": np.concatenate([tree.total_ns[kept], total]),
            "self_ns": np.concatenate([tree.self_ns[kept], total]),
            "device_ns": np.concatenate([tree.device_ns[kept], sums(tree.device_ns)]),
            "device_self_ns": np.concatenate([tree.device_self_ns[kept], sums(tree.device_ns)]),
            "depth": pl.Series(np.concatenate([tree.depth[kept], tree.depth[mothers] + 1]), dtype=pl.Int32),
        }
    )
