"""What torch.compile has done in this process so far: seconds, graphs, graph breaks; the one place that asks torch for it.

All of it is private to `torch._dynamo.utils`: `calculate_time_spent` exists from torch 2.5 on, `counters` since 2.0. Where
one is missing the answer is `None`, and reports say so. Nothing is imported: as long as nobody compiles, nothing was compiled.
"""

from __future__ import annotations

import sys
from typing import Any

from pyrometer.bench.matrix.cell import GraphCounts
from pyrometer.quantity import Seconds


def compile_seconds() -> Seconds | None:
    """Seconds spent compiling frames and backward graphs; 0 when nothing was compiled, `None` if unknown."""
    utils = _utils()
    if utils is None:
        return 0.0
    spent = getattr(utils, "calculate_time_spent", None)
    if spent is None:
        return None
    times: dict[str, float] = spent()
    return float(times.get("total_wall_time", 0.0))


def graph_counts() -> GraphCounts | None:
    """Graphs that were captured, and the places where a graph had to end early; `None` if unknown."""
    utils = _utils()
    if utils is None:
        return GraphCounts(num_graphs=0, num_breaks=0)
    counters = getattr(utils, "counters", None)
    if counters is None:
        return None
    return GraphCounts(
        num_graphs=int(counters["stats"]["unique_graphs"]),
        num_breaks=sum(int(count) for count in counters["graph_break"].values()),
    )


def _utils() -> Any:
    return sys.modules.get("torch._dynamo.utils")
