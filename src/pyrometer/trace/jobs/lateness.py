"""Whose fault it is that a rank comes late: its own work, or what it waited for in other groups; and whether it is chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.bench.distributions import student_tail
from pyrometer.trace.jobs.clocks import middle
from pyrometer.trace.jobs.job import LagMap
from pyrometer.trace.jobs.semantics import POINT_TO_POINT
from pyrometer.trace.jobs.summary import RankSummary

FEWEST_STEPS = 3
"""Steps that it takes to tell a steady delay from chance."""

MOST_APART = 2.0
"""Times the variance of other ranks' steps, up to which those of one rank are taken to vary alike."""

MOST_BORROWED = 3
"""Times its own degrees of freedom that a rank has with those of others: ranks are never quite alike."""

FAR_OUT = 5.0
"""Deviations, in robust standard deviations, beyond which a step counts no further: a hiccup is not how a rank runs."""


MOST_ROWS, MOST_COLUMNS = 32, 40
"""Ranks and steps of a map of lags: what can be told apart on a page."""


def between_equals(waits: pl.DataFrame, chains: Sequence[Sequence[int]]) -> pl.DataFrame:
    """Collectives whose ranks are meant to come together.

    Sends and receives are left out, and collectives between the stages of a pipeline: who comes last there is told by the
    schedule.

    Args:
        waits: `with_waits`, on one clock.
        chains: ranks of each pipeline.
    """
    place = {rank: place for place, chain in enumerate(chains) for rank in chain}
    calls = waits.filter(~pl.col("name").is_in(POINT_TO_POINT))
    if not place:
        return calls
    known = pl.col("rank").replace_strict(place, default=None, return_dtype=pl.Int64).drop_nulls()
    return calls.filter((known.len() == known.n_unique()).over("match"))


def map_lags(equals: pl.DataFrame, first: Sequence[int]) -> LagMap | None:
    """The lags by rank and step, for a drawing; none without steps.

    Args:
        equals: `with_lag`.
        first: ranks that must not be left out.
    """
    per = (
        equals.drop_nulls("step")
        .group_by("rank", "step")
        .agg(pl.col("lag_ns").max().clip(lower_bound=0), begins=pl.col("start_ns").min())
    )
    if not per.height:
        return None
    ranks = sorted(per["rank"].unique())
    chosen = [rank for rank in first if rank in ranks][:MOST_ROWS]
    others = [rank for rank in ranks if rank not in chosen]
    room = max(MOST_ROWS - len(chosen), 1)
    shown = sorted([*chosen, *others[:: -(-len(others) // room) or 1]])
    in_order = per.group_by("step").agg(pl.col("begins").min()).sort("begins")["step"].to_list()
    steps = in_order[-MOST_COLUMNS:]
    drawn = per.filter(pl.col("rank").is_in(shown)).select("rank", "step", "lag_ns")
    held = {(rank, step): lag for rank, step, lag in drawn.iter_rows()}
    return LagMap(
        ranks=shown, steps=steps, lag_ns=[[held.get((rank, step)) for step in steps] for rank in shown]
    )


def with_lag(calls: pl.DataFrame) -> pl.DataFrame:
    """Add what is inherited of a rank's lateness, and its own lag.

    A rank whose tensor-parallel partner is slow comes late to its data-parallel group, too, and so does one whose other group
    has a slow link. So `inherited_ns` is what the rank spent in collectives of other groups, with nothing computed meanwhile, since it
    last met this group, beyond what the middle rank of the group spent so; `lag_ns` is its start less the middle start,
    without what is inherited.

    Args:
        calls: `with_waits`, on one clock.
    """
    exposed = pl.col("exposed_ns").fill_null(0)
    ordered = calls.sort("rank", "start_ns").with_columns(after=exposed.cum_sum().over("rank"))
    met = pl.col("after").shift(1).over("rank", "key").fill_null(0)
    elsewhere = ordered.with_columns(elsewhere=(pl.col("after") - exposed - met).clip(lower_bound=0))
    lag = pl.col("start_ns") - middle("start_ns").over("match")
    inherited = pl.col("elsewhere") - middle("elsewhere").over("match")
    return elsewhere.with_columns(inherited_ns=inherited.clip(lower_bound=0), lag_ns=lag - inherited).drop(
        "after", "elsewhere"
    )


class Usual(NamedTuple):
    """How ranks lag on average, and how their steps vary about that.

    Attributes:
        num_ranks: that have so many steps as it takes.
        total_ns: sum of their mean lags.
        squares: of the deviations of all steps from the mean of their rank.
        degrees: of freedom of that.
    """

    num_ranks: int = 0
    total_ns: float = 0.0
    squares: float = 0.0
    degrees: int = 0

    @classmethod
    def of(cls, lags: Iterable[Sequence[int]]) -> Usual:
        """Of all ranks of a job."""
        held = [_without_hiccups(each) for each in lags if len(each) >= FEWEST_STEPS]
        return cls(
            len(held),
            sum(float(each.mean()) for each in held),
            sum(float(each.var()) * len(each) for each in held),
            sum(len(each) - 1 for each in held),
        )


def chance_of_work(summaries: Iterable[RankSummary], rank: int, num_ranks: int) -> float | None:
    """How probable it is that one of as many ranks that get the same work computes as much longer than the others, step by step.

    Args:
        summaries: of this rank and of others.
        rank: the one that computes most.
        num_ranks: of the job.
    """
    rows = [
        (one.rank, step.name, step.compute_ns) for one in summaries for step in one.steps if step.compute_ns
    ]
    steps = pl.DataFrame(rows, schema={"rank": pl.Int64, "step": pl.String, "ns": pl.Int64}, orient="row")
    beyond = steps.select("rank", ns=pl.col("ns") - pl.col("ns").median().over("step").cast(pl.Int64))
    lags = dict(beyond.group_by("rank", maintain_order=True).agg("ns").iter_rows())
    return chance_of_lag(lags.get(rank, []), num_ranks, Usual.of(lags.values()))


def _without_hiccups(lags: Sequence[int]) -> npt.NDArray[np.float64]:
    values = np.asarray(lags, np.float64)
    middle = np.median(values)
    spread = 1.4826 * float(np.median(np.abs(values - middle)))
    return np.clip(values, middle - FAR_OUT * spread, middle + FAR_OUT * spread) if spread else values


def chance_of_lag(lags: Sequence[int], num_ranks: int, usual: Usual | None = None) -> float | None:
    """How probable it is that the last of so many equal ranks lags like this, step by step; null for too few steps.

    Student's t over the steps, against ranks that lag behind the middle of all by nothing on average, or by what the others do;
    times the number of ranks, since the worst of them was chosen. Few steps do not tell how much they vary: where they vary no
    more than those of the other ranks, those are asked, too.

    Args:
        lags: of one rank, by step.
        num_ranks: of the job.
        usual: of all ranks, this one among them; `None` where they are not known.

    >>> chance_of_lag([100, 110, 90, 105], 4) < 0.01 < chance_of_lag([100, -110, 90, 5], 4)
    True
    """
    num = len(lags)
    if num < FEWEST_STEPS:
        return None
    held = _without_hiccups(lags)
    mean, squares, degrees = float(held.mean()), float(held.var()) * num, num - 1
    # One rank of three is the middle, and of two both are: so many are not free.
    others = 0 if usual is None else usual.num_ranks - 1
    if usual is not None and others > 1:
        freedom = (usual.degrees - degrees) * (others - 1) / others
        apart = (usual.squares - squares) * (others - 1) / others
        if squares / degrees <= MOST_APART * apart / freedom:
            variance = (squares + apart) / (degrees + freedom)
            degrees = int(min(degrees + freedom, MOST_BORROWED * degrees))
            squares = variance * degrees
        mean = min(mean, mean - (usual.total_ns - mean) / others)
    error = (squares / degrees / num) ** 0.5
    if not error:
        return 0.0 if mean > 0 else 1.0
    beyond = student_tail(mean / error, degrees) / 2
    return min(1.0, num_ranks * (beyond if mean > 0 else 1 - beyond))
