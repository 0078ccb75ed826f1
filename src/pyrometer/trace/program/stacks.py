"""Python stacks as text: what an event was called from, innermost first."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.kinds import Kind
from pyrometer.trace.linking.places import through_forward
from pyrometer.trace.naming.patterns import TRACED_MODULE
from pyrometer.trace.program.rollup import above
from pyrometer.trace.rows import IntArray, numbered, row_numbers
from pyrometer.trace.trace import RankTrace


def python_stacks(trace: RankTrace, events: IntArray) -> pl.Series:
    """For each of the events the Python functions around it, innermost first, separated by `;`.

    Functions built into Python are left out. Backward operators have the stack of their forward operator. Of old files,
    which hold no Python functions, the call stack that the operator names; null where there is neither.
    """
    functions = (
        (pl.col("kind") == Kind.PYTHON_FUNCTION.value)
        & ~pl.col("name").str.starts_with("<built-in")
        & ~pl.col("name").str.starts_with(TRACED_MODULE)
    )
    wanted = trace.mask(functions)
    if not wanted.any():
        return _named(trace, events)
    forward = trace.places.forward
    source = np.where(forward >= 0, trace.places.backward, -1)
    innermost = through_forward(trace.nearest(wanted), row_numbers(trace.events["depth"]), source, forward)[
        events
    ]
    rows, which = numbered(innermost)
    texts = _texts(trace.events["name"], above(trace, wanted), rows.tolist())
    return pl.Series(texts, dtype=pl.String).gather(pl.Series(which, dtype=pl.UInt32))


def _texts(names: pl.Series, outer: IntArray, rows: list[int]) -> list[str | None]:
    """The stack of each function; those that lie around several others are put together once."""
    known: dict[int, str | None] = {-1: None}
    for row in rows:
        missing = []
        at = row
        while at not in known:
            missing.append(at)
            at = int(outer[at])
        for one in reversed(missing):
            rest = known[int(outer[one])]
            own = (names[one] or "").replace(";", ",")
            known[one] = own if rest is None else f"{own};{rest}"
    return [known[row] for row in rows]


def _named(trace: RankTrace, events: IntArray) -> pl.Series:
    held = trace.tables["ops"].select("event", "call_stack")
    at = trace.places.stack[events]
    asked = pl.DataFrame({"event": np.maximum(at, 0).astype(np.uint32), "is_known": at >= 0})
    rows = asked.join(held, on="event", how="left", maintain_order="left")
    return rows.select(pl.when("is_known").then("call_stack")).to_series()
