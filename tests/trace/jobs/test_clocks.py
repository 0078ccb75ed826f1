"""Clocks that are not aligned: found from the ends of collectives, and corrected."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.jobs.clocks import align, estimate_clocks
from pyrometer.trace.jobs.matching import match_calls
from pyrometer.trace.jobs.merge import merge_ranks, read_job
from pyrometer.trace.jobs.reduce import reduce_rank
from pyrometer.trace.jobs.summary import RankSummary
from pyrometer.trace.reading.read import read_trace

US = 1000
UNIX_NS = 1_700_000_000_000_000_000


def test_offsets_are_found_and_change_no_other_figure(synthetic_job: Any) -> None:
    true = read_job(synthetic_job(slow_us={2: 200}).write(), workers=1)
    skewed = read_job(synthetic_job(slow_us={2: 200}, clock_us={1: 350, 3: 120.5}).write(), workers=1)
    assert [clock.offset_ns for clock in skewed.clocks] == [0, 350 * US, 0, 120_500]
    assert [clock.residual_ns for clock in skewed.clocks] == [0, 0, 0, 0]
    assert (skewed.stragglers, skewed.collectives) == (true.stragglers, true.collectives)


def test_ranks_of_one_host_share_a_clock_which_is_not_corrected(synthetic_job: Any) -> None:
    paths = synthetic_job(clock_us={1: 350}).write()
    summaries = [msgspec.structs.replace(reduce_rank(rank), host="a") for rank in read_trace(paths).ranks]
    job = merge_ranks(summaries)
    assert (job.clocks[1].offset_ns, job.clocks[1].applied_ns) == (350 * US, 0)
    elsewhere = merge_ranks(
        [msgspec.structs.replace(summary, host=str(summary.rank)) for summary in summaries]
    )
    assert elsewhere.clocks[1].applied_ns == 350 * US


def calls(ends: dict[tuple[str, int, int], int]) -> pl.DataFrame:
    """Matched all-reduces by (group, match, rank)."""
    rows = [
        {
            "key": key,
            "match": match,
            "rank": rank,
            "end_ns": end,
            "name": "all_reduce",
            "num_ranks": 2,
            "start_ns": end,
        }
        for (key, match, rank), end in ends.items()
    ]
    frame = pl.DataFrame(rows)
    return frame.with_columns(num_ranks=pl.len().over("match").cast(pl.Int64))


@given(
    offsets=st.lists(st.integers(-(10**15), 10**15), min_size=2, max_size=6),
    gaps=st.lists(st.integers(1, 10**9), min_size=5, max_size=9),
    wrong=st.integers(0, 2),
)
def test_any_offset_is_recovered_to_the_nanosecond_despite_wrong_matches(
    offsets: list[int], gaps: list[int], wrong: int
) -> None:
    ends: dict[tuple[str, int, int], int] = {}
    moment = UNIX_NS
    for match, gap in enumerate(gaps):
        moment += gap
        for rank, offset in enumerate(offsets):
            ends["g", match, rank] = moment + offset
    for match in range(wrong):
        ends["g", match, 1] += 10**12
    clocks = estimate_clocks(calls(ends), dict.fromkeys(range(len(offsets))))
    assert [clock.offset_ns for clock in clocks] == [offset - offsets[0] for offset in offsets]
    aligned = align(calls(ends), clocks).filter(pl.col("match") >= wrong)
    assert aligned.group_by("match").agg(pl.col("end_ns").n_unique())["end_ns"].to_list() == [1] * (
        len(gaps) - wrong
    )


def test_ranks_that_share_no_group_are_tied_through_others() -> None:
    offset = {0: 0, 1: 500, 2: -700, 3: 90}
    groups = {"a": (0, 1), "b": (1, 2), "c": (2, 3)}
    ends = {
        (key, number * 3 + i, rank): UNIX_NS + 1000 * (number * 3 + i) + offset[rank]
        for i, (key, members) in enumerate(groups.items())
        for number in range(5)
        for rank in members
    }
    clocks = estimate_clocks(calls(ends), dict.fromkeys(offset))
    assert {clock.rank: clock.offset_ns for clock in clocks} == offset


def test_a_drift_is_told() -> None:
    ends = {}
    for match in range(90):
        moment = UNIX_NS + match * 100_000_000
        ends["g", match, 0] = moment
        ends["g", match, 1] = moment + match * 1000  # 10 µs per second
    clocks = estimate_clocks(calls(ends), {0: None, 1: None})
    assert clocks[1].drift_ppm is not None
    assert abs(clocks[1].drift_ppm - clocks[0].drift_ppm - 10) < 0.5  # type: ignore[operator]


def test_without_shared_collectives_the_base_times_stand() -> None:
    summaries = [RankSummary(rank=0), RankSummary(rank=7)]
    clocks = estimate_clocks(match_calls(summaries).calls, {0: None, 7: None})
    assert [(clock.offset_ns, clock.residual_ns, clock.num_collectives) for clock in clocks] == [
        (0, None, 0)
    ] * 2
