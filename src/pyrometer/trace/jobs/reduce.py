"""One rank's trace to its summary: a pure function, run where the file is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.record import to_dict
from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.analysis.collectives import collectives
from pyrometer.trace.jobs.before import KIND, work_before
from pyrometer.trace.jobs.calls import collective_calls, computing
from pyrometer.trace.jobs.summary import CallLabel, RankSummary, StepSummary, WorkLabel, pack
from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.timing.intervals import covered, length
from pyrometer.trace.trace import RankTrace

MAX_CALLS = 200_000
"""Collectives that a summary keeps, the first ones, so that all ranks keep the same; the rest is counted."""

SHARDING = r"(?i)\bFSDP\b|FSDP::|FullyShardedDataParallel|fully_shard|\bZeRO\b"
"""Annotations and functions of libraries that gather sharded parameters before they are used."""

LABEL = ("name", "group", "group_ranks", "group_size", "dtype")


def reduce_rank(trace: RankTrace) -> RankSummary:
    """Reduce one rank's trace to what comparing ranks needs."""
    activity = trace.activity
    all_calls = collective_calls(trace)
    calls = all_calls.head(MAX_CALLS)
    labels = calls.select(LABEL).unique(maintain_order=True).with_row_index("label")
    coded = calls.join(labels, on=list(LABEL), how="left", nulls_equal=True, maintain_order="left")
    work = work_before(trace, calls)
    known = work.select(list(KIND)).unique(maintain_order=True).with_row_index("label")
    total = collectives(trace)
    return RankSummary(
        rank=trace.rank,
        rank_from=trace.info.rank_from,
        path=trace.info.path,
        host=trace.info.host,
        base_ns=trace.info.base_ns,
        world_size=trace.info.world_size,
        start_ns=activity.start_ns,
        end_ns=activity.end_ns,
        parts=to_dict(breakdown(trace).parts),
        on_device=bool(trace.device_work.height),
        compute_ns=length(computing(trace, None)),
        communication_ns=total.communication_ns,
        exposed_communication_ns=total.exposed_ns,
        steps=_steps(trace),
        labels=[CallLabel(**row) for row in labels.drop("label").iter_rows(named=True)],
        calls=pack(
            coded.select(
                "label", "sequence", "peer", "bytes", "start_ns", "dur_ns", "exposed_ns", "launch_ns", "step"
            )
        ),
        num_calls_left_out=all_calls.height - calls.height,
        work_labels=[WorkLabel(**row) for row in known.drop("label").iter_rows(named=True)],
        work=pack(
            work.join(known, on=list(KIND), how="left", nulls_equal=True).select("call", "label", "ns")
        ),
        shards_parameters=_shards(trace),
        num_lost_events=trace.info.num_lost_events,
        is_truncated=any(repair.code == "truncated" for repair in trace.info.repaired),
    )


def _steps(trace: RankTrace) -> list[StepSummary]:
    """The steps with their computing; device work belongs to the step that launched it."""
    first, last = _bounds(trace)
    rows = [step for step in trace.steps["step"].to_list() if step in first]
    low = np.array([first[step] for step in rows], np.int64)
    high = np.array([last[step] for step in rows], np.int64)
    inside = dict(zip(rows, covered(computing(trace, None), low, high).tolist(), strict=True))
    return [
        StepSummary(
            name=row["name"],
            start_ns=row["start_ns"],
            end_ns=row["end_ns"],
            compute_ns=inside.get(row["step"], 0),
            first_compute_ns=first.get(row["step"]),
            last_compute_ns=last.get(row["step"]),
        )
        for row in trace.steps.iter_rows(named=True)
    ]


def _bounds(trace: RankTrace) -> tuple[dict[int, int], dict[int, int]]:
    """First start and last end of what each step computes."""
    compute = computing(trace, None)
    if not len(compute.start):
        return {}, {}
    kind = Kind.KERNEL if trace.number_of(Kind.KERNEL) else Kind.CPU_OP
    work = trace.of_kind(kind).drop_nulls("step")
    inside = np.searchsorted(compute.start, work["start_ns"].to_numpy(), side="right") - 1
    held: npt.NDArray[np.bool_] = (inside >= 0) & (
        work["end_ns"].to_numpy() <= compute.end[np.maximum(inside, 0)]
    )
    by_step = (
        work.filter(pl.Series(held)).group_by("step").agg(pl.col("start_ns").min(), pl.col("end_ns").max())
    )
    return dict(zip(by_step["step"], by_step["start_ns"], strict=True)), dict(
        zip(by_step["step"], by_step["end_ns"], strict=True)
    )


def _shards(trace: RankTrace) -> bool:
    marks = is_kind(Kind.USER_ANNOTATION, Kind.PYTHON_FUNCTION) & pl.col("name").str.contains(SHARDING)
    return bool(trace.mask(marks).any())
