"""Who makes whom wait: what each matched collective cost beyond its own time, and who came last."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import msgspec
import polars as pl

from pyrometer.trace.jobs.job import JobCollective
from pyrometer.trace.jobs.matching import Group
from pyrometer.trace.jobs.semantics import ENDS_TOGETHER, POINT_TO_POINT, bus_factor, ranks_of

SLACK_NS = 100_000
"""A collective may seem to end on one rank this much before another begins: times of old files are rounded."""


def with_waits(calls: pl.DataFrame) -> pl.DataFrame:
    """Matched calls that ran on two ranks or more, with what each rank waited.

    Adds `latency_ns` (shortest duration among the ranks), `skew_ns` (latest less earliest start), `wait_ns` (latest start
    less own start, never more than the own duration), `late_ns` (own start less the median start), `delay_ns` (latest less second
    latest start, never more than the longest duration) and `is_last`. Where a rank is in several collectives at once, `wait_ns` and
    `exposed_ns` count in the first of them.
    """
    timed = calls.drop_nulls("dur_ns").with_columns(n=pl.len().over("match")).filter(pl.col("n") > 1)
    start = pl.col("start_ns")
    waits = timed.with_columns(
        latency_ns=pl.col("dur_ns").min().over("match"),
        skew_ns=start.max().over("match") - start.min().over("match"),
        wait_ns=pl.min_horizontal(start.max().over("match") - start, "dur_ns"),
        late_ns=start - start.sort().get((pl.len() - 1) // 2).over("match"),
        delay_ns=pl.min_horizontal(
            start.max().over("match") - start.top_k(2).min().over("match"),
            pl.col("dur_ns").max().over("match"),
        ),
        is_last=start == start.max().over("match"),
    ).drop("n")
    return waits.with_columns(
        once(waits, "start_ns", "wait_ns"), pl.min_horizontal("exposed_ns", once(waits, "start_ns", "dur_ns"))
    )


def once(calls: pl.DataFrame, begins: str, lasts: str) -> pl.Series:
    """How long something lasts in each call, without what an earlier call of the same rank has had already.

    >>> calls = pl.DataFrame({"rank": [0, 0, 1], "at": [0, 10, 10], "ns": [30, 40, 40]})
    >>> once(calls, "at", "ns").to_list()
    [30, 20, 40]
    """
    ordered = calls.select("rank", begins, lasts, row=pl.int_range(pl.len())).sort("rank", begins, "row")
    end = pl.col(begins) + pl.col(lasts)
    before = end.cum_max().shift(1).over("rank")
    own = end - pl.max_horizontal(begins, before)
    return ordered.with_columns(own.clip(0).cast(pl.Int64).alias(lasts)).sort("row")[lasts]


def split_apart(waits: pl.DataFrame, noise_ns: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take out collectives that cannot be one: of which one rank ended before another began.

    That shows that the match is wrong, where only the order could tell, or that the traces are cut; waiting computed from
    it would be nonsense.

    Args:
        waits: `with_waits`, on one clock.
        noise_ns: uncertainty of the clocks.

    Returns:
        The sound ones, and the others.
    """
    gap = pl.col("start_ns").max().over("match") - pl.col("end_ns").min().over("match")
    apart = pl.col("name").is_in(ENDS_TOGETHER) & (gap > max(10 * noise_ns, SLACK_NS))
    return waits.filter(~apart), waits.filter(apart)


def job_collectives(waits: pl.DataFrame, groups: Sequence[Group]) -> list[JobCollective]:
    """Summarise by name, group and dtype; the most waiting first. Sends and receives form one class, `send_recv`."""
    if not waits.height:
        return []
    is_p2p = pl.col("name").is_in(POINT_TO_POINT)
    rows = waits.with_columns(name=pl.when(is_p2p).then(pl.lit("send_recv")).otherwise("name"))
    per = rows.group_by("match", maintain_order=True).agg(
        pl.col("key", "name", "dtype", "latency_ns", "skew_ns").first(),
        pl.col("bytes").max(),
        wait_ns=pl.col("wait_ns").sum(),
        duration_ns=pl.col("dur_ns").sum(),
        last=pl.col("rank").filter("is_last").first(),
    )
    parts = per.partition_by("key", "name", "dtype", maintain_order=True)
    return sorted(
        _beside_equals([_collective(part, groups) for part in parts]),
        key=lambda collective: (-collective.wait_ns, -collective.duration_ns, collective.name),
    )


def _beside_equals(collectives: Sequence[JobCollective]) -> list[JobCollective]:
    """With the bandwidth of the same collective, of as large messages, in groups of the same shape."""
    alike: dict[Any, list[int]] = {}
    for place, one in enumerate(collectives):
        ranks = ranks_of(one.group_ranks)
        if ranks and one.bus_bandwidth:
            shape = tuple(rank - ranks[0] for rank in ranks)
            alike.setdefault((one.name, one.dtype, one.bytes, shape), []).append(place)
    done = list(collectives)
    for places in alike.values():
        for place in places:
            others = [collectives[other].bus_bandwidth or 0.0 for other in places if other != place]
            if others:
                done[place] = msgspec.structs.replace(done[place], bus_bandwidth_of_equals=median(others))
    return done


def _collective(per: pl.DataFrame, groups: Sequence[Group]) -> JobCollective:
    row = per.row(0, named=True)
    group = groups[row["key"]]
    sized = per.filter((pl.col("bytes") > 0) & (pl.col("latency_ns") > 0))
    rate = int(sized["bytes"].sum()) / int(sized["latency_ns"].sum()) * 1e9 if sized.height else None
    apart = per.filter(pl.col("skew_ns") > 0)["last"].value_counts(sort=True)
    return JobCollective(
        name=row["name"],
        group=group.name,
        group_size=group.size,
        group_ranks=group.ranks,
        dtype=row["dtype"],
        num_matched=per.height,
        bytes=_middle(per["bytes"]),
        latency_ns=_middle(per["latency_ns"]) or 0,
        skew_ns=_middle(per["skew_ns"]) or 0,
        max_skew_ns=int(per["skew_ns"].max()),  # type: ignore[arg-type]
        wait_ns=int(per["wait_ns"].sum()),
        duration_ns=int(per["duration_ns"].sum()),
        bus_bandwidth=None if rate is None else float(rate * bus_factor(row["name"], group.size)),
        latest_rank=int(apart["last"][0]) if apart.height else None,
        latest_share=float(apart["count"][0] / per.height) if apart.height else None,
    )


def _middle(values: pl.Series) -> int | None:
    """The median as one of the values, exact."""
    known = values.drop_nulls().sort()
    return int(known[len(known) // 2]) if len(known) else None
