"""What a verdict says, on series that are plain to see."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.memory.trend.floor import block_floor, find_period
from pyrometer.memory.trend.judge import judge_series

GB = 10**9
AT = np.arange(300)


def noise(size=300, spread=1e6):
    return np.random.default_rng(0).normal(0, spread, size)


def test_the_slope_of_a_leak_and_the_time_to_the_limit():
    verdict = judge_series(AT, GB + 200_000 * AT + noise(), limit_bytes=2 * GB)
    assert verdict.verdict == "leak"
    assert verdict.bytes_per_step == pytest.approx(200_000, rel=0.1)
    assert verdict.bytes_per_step_low <= 200_000 <= verdict.bytes_per_step_high
    left = (2 * GB - GB - 200_000 * 299) / 200_000
    assert verdict.eta_steps_low <= left <= verdict.eta_steps_high
    assert verdict.more_steps is None


def test_steps_count_and_not_readings():
    every_tenth = judge_series(AT * 10, GB + 2_000_000 * AT)
    assert every_tenth.bytes_per_step == pytest.approx(200_000)
    assert every_tenth.block_steps == 100


def test_unevenly_spaced_readings_give_the_same_slope():
    kept = np.sort(np.random.default_rng(1).choice(3000, 300, replace=False))
    verdict = judge_series(kept, GB + 50_000 * kept)
    assert verdict.verdict == "leak"
    assert verdict.bytes_per_step == pytest.approx(50_000)


def test_a_leak_under_an_epoch_long_sawtooth_is_seen_at_its_floor():
    at = np.arange(600)
    verdict = judge_series(at, GB + 500_000 * at + 5_000_000 * (at % 25))
    assert verdict.verdict == "leak"
    assert verdict.period_steps == 25
    assert verdict.bytes_per_step == pytest.approx(500_000, rel=0.02)


def test_growth_that_ended_is_a_warm_up():
    verdict = judge_series(AT, GB + np.minimum(AT, 120) * 2_000_000 + noise())
    assert verdict.verdict == "warm-up"
    assert verdict.eta_steps is None


def test_growth_that_slows_down_says_how_long_it_takes_to_tell():
    verdict = judge_series(AT, GB + 5e8 * (1 - np.exp(-AT / 150)))
    assert verdict.verdict == "inconclusive"
    assert "slows down" in verdict.reason
    settled = np.arange(300 + verdict.more_steps * 2)
    assert judge_series(settled, GB + 5e8 * (1 - np.exp(-settled / 150))).verdict in {"warm-up", "stable"}


def test_the_steps_that_are_asked_for_decide_a_leak():
    def readings(num):
        return GB + 100_000 * np.arange(num) + 8e6 * (np.arange(num) % 30 == 7) + noise(num, 3e6)

    short = judge_series(np.arange(60), readings(60))
    assert short.verdict == "inconclusive"
    longer = 60 + short.more_steps
    assert judge_series(np.arange(longer), readings(longer)).verdict != "inconclusive"


def test_too_few_readings_ask_for_as_many_as_it_takes():
    verdict = judge_series(range(5), [GB] * 5)
    assert verdict.verdict == "inconclusive"
    assert verdict.bytes_per_step_low is None
    enough = 5 + verdict.more_steps
    assert judge_series(range(enough), [GB] * enough).verdict == "stable"


@pytest.mark.parametrize("readings", [[], [GB]])
def test_next_to_nothing_is_inconclusive(readings):
    verdict = judge_series(range(len(readings)), readings)
    assert verdict.verdict == "inconclusive"
    assert verdict.more_steps >= 1


def test_a_small_steady_growth_of_an_exact_counter_is_a_leak_if_nothing_is_negligible():
    readings = GB + 64 * AT
    assert judge_series(AT, readings).verdict == "stable"
    assert judge_series(AT, readings, negligible_bytes=0).verdict == "leak"


def test_falling_memory_is_stable():
    assert judge_series(AT, GB - 1_000_000 * AT + noise()).verdict == "stable"


def test_a_leak_names_the_plateau_that_would_look_alike():
    verdict = judge_series(AT, GB + 200_000 * AT + noise())
    assert "plateau" in verdict.reason


def test_wrong_input_is_refused_in_one_line():
    with pytest.raises(InputError, match="one step for each reading"):
        judge_series([1, 2], [1])
    with pytest.raises(InputError, match="do not rise"):
        judge_series([1, 1], [1, 1])
    with pytest.raises(InputError, match="not finite"):
        judge_series([1, 2], [1, float("nan")])
    with pytest.raises(InputError, match="limit_bytes: got 0"):
        judge_series([1, 2], [1, 1], limit_bytes=0)
    with pytest.raises(InputError, match="negligible_bytes: got -1"):
        judge_series([1, 2], [1, 1], negligible_bytes=-1)


@given(st.lists(st.integers(0, 2**45), max_size=120))
def test_any_series_gets_a_verdict_and_more_steps_exactly_if_undecided(readings):
    verdict = judge_series(range(len(readings)), readings, limit_bytes=2**40)
    assert (verdict.more_steps is not None) == (verdict.verdict == "inconclusive")
    if verdict.bytes_per_step_low is not None:
        assert verdict.bytes_per_step_low <= verdict.bytes_per_step
    if verdict.bytes_per_step_high is not None:
        assert verdict.bytes_per_step <= verdict.bytes_per_step_high


@given(st.lists(st.integers(0, 2**20), min_size=40, max_size=100), st.integers(2, 1000))
def test_stretching_the_steps_divides_the_slope(readings, factor):
    once = judge_series(range(len(readings)), readings)
    stretched = judge_series([step * factor for step in range(len(readings))], readings)
    assert stretched.verdict == once.verdict
    assert stretched.bytes_per_step * factor == pytest.approx(once.bytes_per_step, abs=1e-6)


@given(st.integers(3, 20))
def test_the_period_of_a_sawtooth_is_found_whatever_the_trend(period):
    at = np.arange(200.0)
    assert find_period(at, 7 * at + 30 * (at % period)) == period


@given(st.lists(st.integers(0, 2**30), min_size=1, max_size=200))
def test_the_floor_is_made_of_readings_at_their_steps(readings):
    at = np.arange(len(readings), dtype=np.float64)
    floor = block_floor(at, np.asarray(readings, dtype=np.float64))
    assert len(floor.readings) <= 24
    for step, lowest in zip(floor.steps, floor.readings, strict=True):
        assert readings[int(step)] == lowest
