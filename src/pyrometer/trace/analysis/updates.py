"""Optimizers that update tensor by tensor, where torch has an update of all at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.naming.optimizers import FUSED, MARK
from pyrometer.trace.rows import IntArray, among, row_numbers
from pyrometer.trace.trace import RankTrace

OF_ONE_TENSOR = r"^aten::(add|sub|mul|div|lerp|addcmul|addcdiv|sqrt|neg|maximum)_?$"
"""What an update consists of, tensor by tensor; of all at once it is `aten::_foreach_…` or `aten::_fused_…`."""

FEWEST = 20
"""Such operators in an update: of one tensor or two nothing is won."""


class Update(NamedTuple):
    """All updates of one optimizer."""

    optimizer: str
    mark: str
    within: IntArray  # rows of `events` that belong to it
    longest: int


def updates_by_tensor(trace: RankTrace) -> list[Update]:
    """Find the optimizers that update tensor by tensor; a single operator per tensor is as good as it gets."""
    marks = trace.named(
        is_kind(Kind.USER_ANNOTATION, Kind.CPU_OP) & pl.col("name").str.contains(MARK.pattern)
    )
    found = []
    for (name,), mine in marks.partition_by("name", as_dict=True, maintain_order=True).items():
        optimizer = MARK.sub(r"\1", str(name))
        rows = among(np.arange(trace.events.height), row_numbers(mine["event"]))
        within = np.flatnonzero(trace.nearest(rows) >= 0)
        is_one = trace.mask(is_kind(Kind.CPU_OP) & pl.col("name").str.contains(OF_ONE_TENSOR))
        ops = trace.events[within[is_one[within]]]
        if optimizer in FUSED and ops.height >= FEWEST * mine.height and ops["name"].n_unique() > 1:
            longest = int(mine["event"][int(mine["dur_ns"].arg_max() or 0)])
            found.append(Update(optimizer, str(name), within, longest))
    return found
