"""Steps of inference engines, by the annotations in which these say what a step serves."""

from __future__ import annotations

import polars as pl

from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.naming.engine_names import STEP, EngineStep, read_step


def engine_marks(events: pl.DataFrame) -> pl.DataFrame:
    """The outermost annotations of steps on the thread that has most of them: `name, label, start_ns, end_ns`, without overlap.

    An annotation that says more than the one around it does (`step[…]` within `execute_model`) stands for it.
    """
    marks = events.filter(is_kind(Kind.USER_ANNOTATION) & pl.col("name").str.contains(STEP))
    if not marks.height:
        return _labelled(marks)
    track = marks["track"].value_counts().sort("count", "track", descending=[True, False])["track"][0]
    rows = marks.filter(pl.col("track") == track).sort("start_ns", -pl.col("dur_ns"))
    outer = rows.filter(
        (pl.col("start_ns") >= pl.col("end_ns").cum_max().shift()).fill_null(value=True)
    ).with_row_index("mark")
    inner = rows.select("name", "start_ns", says=pl.col("name") != "execute_model")
    named = (
        inner.join_asof(outer.select("mark", "start_ns"), on="start_ns", strategy="backward")
        .sort("mark", ~pl.col("says"), "start_ns")
        .group_by("mark", maintain_order=True)
        .agg(pl.col("name").first())
    )
    whole = outer.drop("name").join(named, on="mark", how="left", maintain_order="left")
    following = pl.col("start_ns").shift(-1)
    return _labelled(whole.with_columns(end_ns=pl.min_horizontal("end_ns", following)))


def served(steps: pl.DataFrame, events: pl.DataFrame) -> list[EngineStep]:
    """What each step of an engine served, in order; empty where steps are marked by something else."""
    if not steps.height or steps["source"][0] != "engine":
        return []
    return [read_step(name) or EngineStep() for name in engine_marks(events)["name"].to_list()]


def _labelled(marks: pl.DataFrame) -> pl.DataFrame:
    labels = [
        f"{i} {(read_step(name) or EngineStep()).label}" for i, name in enumerate(marks["name"].to_list())
    ]
    return marks.select("name", "start_ns", "end_ns").with_columns(label=pl.Series(labels, dtype=pl.String))
