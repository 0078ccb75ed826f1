"""Whose fault a late rank is: its own work counts, what it waited for in other groups does not, and chance is told apart."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

from pyrometer.trace.jobs import lateness
from pyrometer.trace.jobs.job import MAX_CHANCE
from pyrometer.trace.jobs.lateness import (
    Usual,
    between_equals,
    chance_of_lag,
    chance_of_work,
    map_lags,
    with_lag,
)
from pyrometer.trace.jobs.merge import read_job
from pyrometer.trace.jobs.summary import RankSummary, StepSummary


def calls(*rows: tuple[int, str, int, int, int]) -> pl.DataFrame:
    """Matched calls: rank, group, number in it, start and exposed time."""
    keys = {group: key for key, group in enumerate(sorted({row[1] for row in rows}))}
    return pl.DataFrame(
        [(r, keys[g], f"{g}{n}", s, x, "all_reduce", "step 0") for r, g, n, s, x in rows],
        schema=["rank", "key", "match", "start_ns", "exposed_ns", "name", "step"],
        orient="row",
    )


def lag_of(frame: pl.DataFrame, rank: int, match: str) -> tuple[int, int]:
    row = with_lag(frame).filter((pl.col("rank") == rank) & (pl.col("match") == match))
    return int(row["lag_ns"][0]), int(row["inherited_ns"][0])


def test_waiting_for_a_partner_in_another_group_is_inherited() -> None:
    # Rank 1 is the partner of slow rank 0, and so comes late to its own data-parallel group with rank 3.
    frame = calls(
        (0, "tp0", 0, 500, 10), (1, "tp0", 0, 100, 410), (2, "tp1", 0, 100, 10), (3, "tp1", 0, 100, 10),
        (0, "dp0", 0, 520, 10), (2, "dp0", 0, 120, 410), (1, "dp1", 0, 520, 10), (3, "dp1", 0, 120, 410),
    )  # fmt: skip
    assert lag_of(frame, 0, "tp00") == (200, 0)
    assert lag_of(frame, 0, "dp00") == (200, 0)
    assert lag_of(frame, 1, "dp10") == (0, 200)


def test_only_what_came_since_the_group_last_met_is_inherited() -> None:
    frame = calls(
        (0, "tp", 0, 100, 900), (0, "dp", 0, 1000, 10), (1, "dp", 0, 1000, 10),
        (0, "dp", 1, 2000, 10), (1, "dp", 1, 1800, 210),
    )  # fmt: skip
    assert lag_of(frame, 0, "dp1") == (100, 0)


def test_equal_ranks_are_seldom_called_steady() -> None:
    chance = random.Random(4)
    alarms = 0
    for _ in range(500):
        ranks = [[round(chance.gauss(0, 1000)) for _ in range(8)] for _ in range(8)]
        worst = max(ranks, key=sum)
        alarms += (chance_of_lag(worst, 8) or 1.0) <= 0.01
    assert alarms <= 12  # 5 are expected
    assert (chance_of_lag([round(chance.gauss(5000, 1000)) for _ in range(8)], 8) or 0) <= 0.01
    assert chance_of_lag([5, 5], 2) is None
    assert chance_of_lag([0, 0, 0], 2) == 1.0


@pytest.mark.parametrize("draw", ["gauss", "lognormvariate"])
def test_three_steps_are_enough_where_the_other_ranks_tell_how_steps_vary(draw: str) -> None:
    chance = random.Random(11)
    late = {True: 0, False: 0}
    alarms = 0
    for _ in range(400):
        ranks = [[round(1000 * getattr(chance, draw)(0, 1)) for _ in range(3)] for _ in range(8)]
        worst = max(ranks, key=sum)
        alarms += (chance_of_lag(worst, 8, Usual.of(ranks)) or 1.0) <= 0.01
        ranks[0] = [lag + 5000 for lag in ranks[0]]
        for told in late:
            late[told] += (chance_of_lag(ranks[0], 8, Usual.of(ranks) if told else None) or 1.0) <= 0.01
    assert alarms <= 12
    assert late[True] > 1.3 * late[False]


def test_one_hiccup_does_not_hide_a_steady_delay() -> None:
    assert (chance_of_lag([100, 105, 95, 102, 98, 101, -4000], 4) or 0.0) < 0.05


def test_collectives_between_stages_of_a_pipeline_are_left_out() -> None:
    frame = calls((0, "dp", 0, 1, 0), (2, "dp", 0, 2, 0), (0, "pp", 0, 5, 0), (1, "pp", 0, 6, 0))
    assert set(between_equals(frame, [[0, 1], [2, 3]])["match"]) == {"dp0"}
    assert between_equals(frame, []).height == 4


def test_the_map_shows_who_came_late_in_which_step(synthetic_job: Any) -> None:
    held = read_job(synthetic_job(slow_us={2: 200}, num_steps=4).write(), workers=1).lag_map
    assert held is not None
    assert held.steps == [f"ProfilerStep#{step}" for step in range(4)]
    assert held.lag_ns == [[0] * 4, [0] * 4, [200_000] * 4, [0] * 4]


def test_the_map_of_a_large_job_keeps_the_stragglers(
    synthetic_job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lateness, "MOST_ROWS", 4)
    job = read_job(synthetic_job(num_ranks=11, slow_us={7: 200}).write(), workers=1)
    assert job.lag_map is not None
    assert 7 in job.lag_map.ranks
    assert len(job.lag_map.ranks) <= 5


def test_without_steps_there_is_no_map() -> None:
    frame = with_lag(calls((0, "dp", 0, 1, 0), (2, "dp", 0, 2, 0))).with_columns(step=pl.lit(None, pl.String))
    assert map_lags(frame, []) is None


@pytest.mark.parametrize(("slow_ns", "is_chance"), [(0, True), (400, False)])
def test_a_rank_that_computes_more_in_every_step_is_told_from_the_one_that_happens_to(
    slow_ns: int, is_chance: bool
) -> None:
    """Six steps of three ranks that share two cores: whoever gets less of them computes longer."""
    chance_of = np.random.default_rng(5)

    def summary(rank: int) -> RankSummary:
        lasts = chance_of.normal(1000, 150, 6).astype(int) + (slow_ns if rank == 1 else 0)
        steps = [
            StepSummary(name=f"ProfilerStep#{number}", start_ns=0, end_ns=1, compute_ns=int(ns))
            for number, ns in enumerate(lasts)
        ]
        return RankSummary(rank=rank, steps=steps)

    summaries = [summary(rank) for rank in range(3)]
    most = max(summaries, key=lambda one: sum(step.compute_ns for step in one.steps)).rank
    chance = chance_of_work(summaries, most, 3)
    assert chance is not None
    assert (chance > MAX_CHANCE) == is_chance
