"""The ranks that others wait for, how steadily, and what they do while the others already wait."""

from __future__ import annotations

import polars as pl

from pyrometer.record import to_dict
from pyrometer.trace.jobs.before import KIND
from pyrometer.trace.jobs.job import Straggler, Suspect
from pyrometer.trace.jobs.lateness import Usual, chance_of_lag
from pyrometer.trace.jobs.summary import RankSummary, SummariesOf
from pyrometer.trace.jobs.waits import once
from pyrometer.trace.program.where import place_of

MIN_SHARE = 0.02
"""Share of all waiting that makes a rank worth naming."""

COMPARED = 64
"""Other ranks, evenly chosen, beside whose work that of a straggler is put; their median needs no more."""


def find_stragglers(
    equals: pl.DataFrame, summaries_of: SummariesOf, num_ranks: int, noise_ns: int
) -> list[Straggler]:
    """Name the ranks behind at least `MIN_SHARE` of the waiting, the worst first.

    Nobody is blamed for what he inherits from other groups.

    Args:
        equals: collectives between ranks that are meant to come together, `with_lag`.
        summaries_of: gives the summaries of ranks.
        num_ranks: of the job.
        noise_ns: uncertainty of the clocks; collectives whose starts are not further apart are nobody's fault.
    """
    real = equals.filter(pl.col("skew_ns") > noise_ns)
    total = int(real["wait_ns"].sum())
    if total <= 0:
        return []
    own = pl.col("inherited_ns") * 2 < pl.col("late_ns")
    last = real.filter(pl.col("is_last") & own).unique("match", keep="first", maintain_order=True)
    last = last.with_columns(
        once(last.with_columns(from_ns=pl.col("start_ns") - pl.col("delay_ns")), "from_ns", "delay_ns")
    )
    caused = real.group_by("match").agg(caused=pl.col("wait_ns").sum())
    last = last.join(caused, on="match", how="left", maintain_order="left")
    by_rank = last.group_by("rank").agg(pl.col("caused").sum(), pl.col("delay_ns").sum(), pl.len())
    by_step = last.drop_nulls("step").group_by("step", "rank").agg(pl.col("caused").sum())
    worst = by_step.sort("caused", "rank", descending=[True, False]).unique("step", keep="first")
    steps = worst.height
    lags = dict(
        equals.drop_nulls("step")
        .group_by("rank", "step", maintain_order=True)
        .agg(pl.col("lag_ns").sum())
        .group_by("rank", maintain_order=True)
        .agg("lag_ns")
        .iter_rows()
    )
    usual = Usual.of(lags.values())
    stragglers = []
    for row in by_rank.sort("caused", "rank", descending=[True, False]).iter_rows(named=True):
        if row["caused"] < MIN_SHARE * total:
            continue
        led = worst.filter(pl.col("rank") == row["rank"]).height
        late = last.filter(pl.col("rank") == row["rank"])
        stragglers.append(
            Straggler(
                rank=row["rank"],
                caused_wait_ns=row["caused"],
                delay_ns=row["delay_ns"],
                gain_ns=_gain(equals, late, row["rank"]),
                num_last=row["len"],
                share=row["caused"] / total,
                num_steps=led,
                persistence=led / steps if steps else None,
                chance=chance_of_lag(lags.get(row["rank"], []), num_ranks, usual),
                suspects=_suspects(real, late, row["rank"], summaries_of),
            )
        )
    return stragglers


def _gain(waits: pl.DataFrame, late: pl.DataFrame, rank: int) -> int:
    """In each group: how much less every other rank would wait in the open, up to the delay.

    All collectives of the steps count: where communication is what takes longest, a late start is hidden behind computing
    and yet delays all that follows.
    """
    exposed = (
        waits.join(late.select("key", "step"), on=["key", "step"], how="semi", nulls_equal=True)
        .group_by("key", "rank")
        .agg(pl.col("exposed_ns").fill_null(0).sum())
    )
    of_others = exposed.filter(pl.col("rank") != rank).group_by("key").agg(least=pl.col("exposed_ns").min())
    own = exposed.filter(pl.col("rank") == rank).select("key", own="exposed_ns")
    gains = (
        late.group_by("key")
        .agg(pl.col("delay_ns").sum())
        .join(of_others, on="key")
        .join(own, on="key")
        .select(pl.min_horizontal("delay_ns", pl.col("least") - pl.col("own")).clip(lower_bound=0))
    )
    return int(gains.to_series().sum())


def _suspects(waits: pl.DataFrame, late: pl.DataFrame, rank: int, summaries_of: SummariesOf) -> list[Suspect]:
    """Sum each kind of work per rank over the collectives that the straggler came late to, and compare."""
    members = waits.join(late.select("match"), on="match", how="semi").select("rank", "call")
    beside = [held for held in sorted(members["rank"].unique()) if held != rank]
    seen = {rank, *beside[:: -(-len(beside) // COMPARED) or 1]}
    members = members.filter(pl.col("rank").is_in(seen))
    parts = [_work(summary, members.filter(pl.col("rank") == summary.rank)) for summary in summaries_of(seen)]
    work = (
        pl.concat([part for part in parts if part is not None]) if any(p is not None for p in parts) else None
    )
    if work is None or not work.height:
        return []
    others = members.filter(pl.col("rank") != rank)["rank"].n_unique()
    key = list(KIND)
    own = work.filter(pl.col("rank") == rank).select(*key, own="ns")
    rest = work.filter(pl.col("rank") != rank).group_by(key).agg(pl.col("ns").sort())
    compared = own.join(rest, on=key, how="left", nulls_equal=True)
    excess = []
    for row in compared.iter_rows(named=True):
        values = row["ns"] or []
        place = others // 2 - (others - len(values))  # ranks without this work count as 0
        usual = values[place] if 0 <= place < len(values) else 0
        excess.append(
            Suspect(
                name=row["name"],
                side=row["side"],
                phase=row["phase"],
                where=place_of(row),
                excess_ns=row["own"] - usual,
                own_ns=row["own"],
            )
        )
    behind = int(late["late_ns"].sum())
    suspects = sorted(
        (suspect for suspect in excess if suspect.excess_ns > 0),
        key=lambda suspect: (-suspect.excess_ns, suspect.name, suspect.phase or ""),
    )
    on_device = [suspect for suspect in suspects if suspect.side == "device"]
    explains = sum(suspect.excess_ns for suspect in on_device) >= behind / 2
    ordered = (
        [*on_device, *(suspect for suspect in suspects if suspect.side == "host")] if explains else suspects
    )
    return ordered[:3]


def _work(summary: RankSummary, members: pl.DataFrame) -> pl.DataFrame | None:
    work = summary.work.frame()
    if not work.height or not members.height:
        return None
    labels = pl.DataFrame([to_dict(label) for label in summary.work_labels], schema=KIND)
    labels = labels.with_columns(label=pl.int_range(pl.len(), dtype=pl.Int64))
    held = work.join(members.select("call"), on="call", how="semi")
    summed = held.group_by("label").agg(pl.col("ns").sum()).join(labels, on="label", how="left")
    return summed.select(pl.lit(summary.rank, pl.Int64).alias("rank"), *KIND, "ns")
