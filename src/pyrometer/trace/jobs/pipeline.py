"""Pipelines, found by who sends to whom: how long each stage stands still, against what the schedule must cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import polars as pl

from pyrometer.trace.jobs.job import Pipeline, PipelineStage
from pyrometer.trace.jobs.semantics import POINT_TO_POINT
from pyrometer.trace.jobs.summary import RankSummary, SummariesOf

MIN_MICROBATCHES = 2
"""Messages per step to the next stage that make a pipeline; one alone is a hand-over of any kind."""


def find_pipelines(
    calls: pl.DataFrame, waits: pl.DataFrame, summaries_of: SummariesOf, offsets: Mapping[int, int]
) -> list[Pipeline]:
    """Find the pipelines of a job; none where the traces do not tell the other side of sends and receives.

    A bubble is time of a step in which the stage computes nothing: transfers that nothing hides are part of it, and so is
    the imbalance between stages; hence it may exceed the theoretical one.

    Args:
        calls: `match_calls(...).calls`.
        waits: `with_waits` of them.
        summaries_of: gives the summaries of ranks.
        offsets: correction per rank, ns, beyond the files' base times.
    """
    sends = calls.filter((pl.col("name") == "send") & pl.col("peer").is_not_null())
    receives = calls.filter((pl.col("name") == "recv") & pl.col("peer").is_not_null())
    edges = pl.concat([sends.select(src="rank", dst="peer"), receives.select(src="peer", dst="rank")]).unique(
        ["src", "dst"]
    )
    between = waits.filter(pl.col("name").is_in(POINT_TO_POINT))
    waited = dict(between.group_by("rank").agg(pl.col("wait_ns").sum()).iter_rows())
    pipelines = []
    for ranks in _chains(edges):
        members = list(summaries_of(ranks))
        if len(members) < 2:
            continue
        pipeline = _pipeline(ranks, members, _microbatches(sends, receives, ranks), waited, offsets)
        if pipeline is not None:
            pipelines.append(pipeline)
    return pipelines


def _chains(edges: pl.DataFrame) -> list[list[int]]:
    """Ranks that are connected by sends."""
    chain: dict[int, set[int]] = {}
    for src, dst in edges.sort("src", "dst").iter_rows():
        joined = chain.get(src, {src}) | chain.get(dst, {dst})
        for rank in joined:
            chain[rank] = joined
    distinct = {id(ranks): sorted(ranks) for ranks in chain.values()}
    return sorted(distinct.values())


def _microbatches(sends: pl.DataFrame, receives: pl.DataFrame, ranks: Sequence[int]) -> int:
    """The usual number of messages per step from a stage to the next, seen by the sender or else by the receiver."""
    after = dict(pairwise(ranks))
    both = [
        sends.select("step", src="rank", dst="peer"),
        receives.select("step", src="peer", dst="rank"),
    ]
    counts = []
    for part in both:
        forward = part.filter(
            pl.col("src").replace_strict(after, default=-1, return_dtype=pl.Int64) == pl.col("dst")
        )
        per = forward.group_by("step", "src").len()
        counts.append(int(per["len"].sort()[per.height // 2]) if per.height else 0)
    return max(counts)


def _pipeline(
    ranks: list[int],
    members: Sequence[RankSummary],
    num: int,
    waited: Mapping[int, int],
    offsets: Mapping[int, int],
) -> Pipeline | None:
    steps = _common_steps(members, offsets)
    if not steps.height or num < MIN_MICROBATCHES:
        return None
    per = steps.with_columns(bubble=1 - pl.col("compute_ns") / pl.col("length_ns"))
    stages = [
        PipelineStage(
            stage=stage,
            rank=rank,
            bubble=float(own["bubble"].mean()),  # type: ignore[arg-type]
            compute_ns=int(own["compute_ns"].sum()) // own.height,
            wait_ns=waited.get(rank, 0),
        )
        for stage, rank in enumerate(ranks)
        if (own := per.filter(pl.col("rank") == rank)).height
    ]
    lengths = steps.unique("step")["length_ns"]
    p = len(ranks)
    return Pipeline(
        ranks=ranks,
        num_stages=p,
        num_microbatches=num,
        num_steps=len(lengths),
        step_ns=int(lengths.sum()) // len(lengths),
        stages=stages,
        bubble=sum(stage.bubble for stage in stages) / len(stages),
        theoretical_bubble=(p - 1) / (num + p - 1),
    )


def _common_steps(members: Sequence[RankSummary], offsets: Mapping[int, int]) -> pl.DataFrame:
    """Steps that all stages recorded: `rank, step, compute_ns, length_ns`."""
    rows = []
    for member in members:
        shift = member.base_ns - offsets.get(member.rank, 0)
        for step in member.steps:
            if step.first_compute_ns is not None and step.last_compute_ns is not None:
                low, high = step.first_compute_ns + shift, step.last_compute_ns + shift
                rows.append((member.rank, step.name, step.compute_ns, low, high))
    schema = {"rank": pl.Int64, "step": pl.String, "compute_ns": pl.Int64, "low": pl.Int64, "high": pl.Int64}
    steps = pl.DataFrame(rows, schema=schema, orient="row")
    return steps.filter(pl.col("rank").n_unique().over("step") == len(members)).with_columns(
        length_ns=pl.col("high").max().over("step") - pl.col("low").min().over("step")
    )
