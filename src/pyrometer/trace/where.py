"""Naming the place of an event for people: source line, module, operator, phase."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import polars as pl

from pyrometer.record import Record, doc
from pyrometer.trace.trace import RankTrace

FRAME = r"^(?<file>.*)\((?<line>\d+)\): (?<function>.*)$"


class Where(Record, frozen=True, kw_only=True):
    """A place in the user's program, as far as the trace knows it."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    module: Annotated[str | None, doc("nn.Module, as the trace names it")] = None
    op: Annotated[str | None, doc("operator")] = None
    phase: Annotated[str | None, doc("forward, backward, optimizer, …")] = None


def place_names(trace: RankTrace) -> pl.DataFrame:
    """One row per event: `file, line, function, module, op, phase`; null where the trace does not say.

    File, line and function are those of the innermost Python function in the user's own code, which a trace holds that
    was captured with stacks.
    """
    names = trace.events["name"]
    at = trace.places
    ops = trace.events["op"].cast(pl.Int64).fill_null(-1).to_numpy()
    return (
        pl.DataFrame(
            {
                "frame": _pick(names, at.frame),
                "module": _pick(names, at.module).str.replace(r"^(nn\.Module: |module:)", ""),
                "op": _pick(names, ops),
                "phase": _pick(names, at.phase).str.strip_prefix("phase:"),
            }
        )
        .select(
            pl.col("frame").str.extract_groups(FRAME).struct.unnest(),
            "module",
            "op",
            "phase",
        )
        .with_columns(pl.col("line").cast(pl.Int64))
    )


def where(trace: RankTrace, event: int) -> Where:
    """The place of one event."""
    return Where(**_names(trace).row(event, named=True))


def _names(trace: RankTrace) -> pl.DataFrame:
    if "place_names" not in trace.results:
        trace.results["place_names"] = place_names(trace)
    found: pl.DataFrame = trace.results["place_names"]
    return found


def _pick(names: pl.Series, rows: np.ndarray) -> pl.Series:
    picked = pl.Series(rows)
    return names.gather(picked.set(picked < 0, None).cast(pl.UInt32))
