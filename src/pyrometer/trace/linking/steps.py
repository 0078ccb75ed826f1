"""Where steps begin and end: what the profiler marked, or else what repeats."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace import schema
from pyrometer.trace.kinds import Kind

IntArray = npt.NDArray[np.int64]

MARK = r"^ProfilerStep#?\s*\d+$"


def find_steps(events: pl.DataFrame) -> pl.DataFrame:
    """The steps of one rank, in order; without a mark and without a cycle there are none."""
    marks = events.filter((pl.col("kind") == Kind.USER_ANNOTATION.value) & pl.col("name").str.contains(MARK))
    return marks.select(
        pl.int_range(pl.len(), dtype=pl.Int32).alias("step"),
        "rank",
        "name",
        "start_ns",
        "end_ns",
        pl.lit("profiler").alias("source"),
    ).cast(schema.dtypes(schema.STEPS))  # type: ignore[arg-type]


def step_of(steps: pl.DataFrame, start_ns: IntArray) -> IntArray:
    """The step in which each moment lies; -1 outside of all."""
    if not steps.height:
        return np.full(len(start_ns), -1, np.int64)
    found = np.searchsorted(steps["start_ns"].to_numpy(), start_ns, side="right") - 1
    inside = (found >= 0) & (start_ns < steps["end_ns"].to_numpy()[np.maximum(found, 0)])
    return np.asarray(np.where(inside, found, -1), np.int64)
