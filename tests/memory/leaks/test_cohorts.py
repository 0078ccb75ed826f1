"""The rules, on births and deaths that are simulated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from representative import every
from scipy import stats

from pyrometer.memory.leaks.cohorts import (
    FALSE_ALARM_RATE,
    MIN_STEPS,
    Birth,
    Span,
    find_growth,
    growth_of,
    live_bytes,
    needed_steps,
    rises,
    sporadic,
    wilson_low,
)

RUNS = 400

CLEAN = (
    "rolling",
    "epochs",
    "random_eviction",
    "shapes",
    "jittery_queue",
    "random_lives",
    "best_so_far",
    "built_early",
    "built_late",
    "random_lengths",
)
LEAKING = ("every_step", "every_few_steps", "at_random", "overfull_queue", "ever_longer", "among_others")


def alarms(births, steps):
    return any(not growth.slowing for growth in find_growth(births, Span.of(steps)))


@pytest.mark.parametrize("steps", every(3, [60, MIN_STEPS, 150]))
@pytest.mark.parametrize("kind", CLEAN)
def test_clean_programs_raise_no_more_false_alarms_than_is_said(kind, steps, simulation):
    program = getattr(simulation, kind)
    share = simulation.share(lambda births: alarms(births, steps), program, steps, RUNS)
    assert share <= FALSE_ALARM_RATE + 2 * (FALSE_ALARM_RATE / RUNS) ** 0.5


@pytest.mark.parametrize("kind", LEAKING)
def test_leaking_programs_are_found_within_sixty_steps(kind, simulation):
    program = getattr(simulation, kind)
    assert simulation.share(lambda births: alarms(births, 60), program, 60, RUNS) >= 0.97


@pytest.mark.parametrize("period", [1, 2, 3, 5, 7, 10])
def test_the_rate_of_a_periodic_leak_is_exact(period):
    births = [Birth(step, "site", 700, None) for step in range(0, 120, period)]
    (growth,) = find_growth(births, Span.of(120))
    assert growth.bytes_per_step == pytest.approx(700 / period)
    assert growth.low == pytest.approx(growth.high) == pytest.approx(growth.bytes_per_step)
    assert growth.period == pytest.approx(period, rel=0.1)


def test_the_interval_of_a_random_leak_covers_its_rate():
    covered = []
    for run in range(RUNS):
        rng = np.random.default_rng(run)
        births = [
            Birth(step, "site", int(rng.exponential(1000)), None) for step in range(200) if rng.random() < 0.4
        ]
        (growth,) = [one for one in find_growth(births, Span.of(200)) if one.rule == "kept"]
        covered.append(growth.low <= 400 <= growth.high)
    assert np.mean(covered) >= 0.9


def test_a_rate_does_not_depend_on_how_long_it_is_watched():
    rates = [
        find_growth([Birth(step, "site", 64, None) for step in range(steps)], Span.of(steps))[
            0
        ].bytes_per_step
        for steps in (24, 60, 500)
    ]
    assert rates == [64, 64, 64]


def test_growth_that_slows_down_says_so():
    births = [
        Birth(step, "cache", 10, None) for step in (0, 1, 2, 3, 5, 7, 9, 12, 14, 18, 21, 24, 30, 39, 47, 52)
    ]
    (growth,) = find_growth(births, Span.of(60))
    assert growth.slowing


def test_a_longer_and_longer_tensor_is_growth_though_nothing_old_survives():
    births = [Birth(step, "cat", 8 * step, step + 1 if step < 59 else None) for step in range(60)]
    (growth,) = find_growth(births, Span.of(60))
    assert growth.rule == "queued"
    assert growth.bytes_per_step == pytest.approx(8)


def test_a_queue_whose_content_was_garbage_is_none():
    births = [Birth(step, "cat", 8 * step, step + 1) for step in range(60)]
    assert find_growth(births, Span.of(60)) == []


def test_the_fastest_site_comes_first():
    births = [
        Birth(step, site, size, None) for step in range(60) for site, size in (("small", 4), ("large", 400))
    ]
    assert [growth.site for growth in find_growth(births, Span.of(60))] == ["large", "small"]


def test_too_few_steps_decide_nothing():
    births = [Birth(step, "site", 64, None) for step in range(MIN_STEPS - 4)]
    assert find_growth(births, Span.of(MIN_STEPS - 4)) == []


def test_rare_survivors_in_both_halves_leave_it_open():
    births = [Birth(step, "save", 64, None) for step in (14, 44)]
    assert sporadic(births, Span.of(60)) == 2
    assert needed_steps(2, 43) > 60


@pytest.mark.parametrize("last", [20, 30, 40, 48])
def test_growth_that_has_ended_is_none(last):
    births = [Birth(step, "warm-up", 64, None) for step in range(last)]
    assert find_growth(births, Span.of(60)) == []
    assert sporadic(births, Span.of(60)) == 0
    windows = Span((*range(60), *range(400, 420)), 500, warm=7, lag=20)
    assert find_growth(births, windows) == []


@pytest.mark.parametrize("length", [5, 20, 34, 38, 40])
def test_a_ring_that_is_full_is_neither_growth_nor_open(length):
    births = [Birth(step, "ring", 64, step + length if step + length < 60 else None) for step in range(60)]
    assert find_growth(births, Span.of(60)) == []
    assert sporadic(births, Span.of(60)) == 0


def test_a_leak_in_bursts_goes_on_through_its_pauses():
    births = [Birth(step, "epoch", 64, None) for step in range(60) if step % 24 < 12]
    assert find_growth(births, Span.of(60))


def test_windows_are_judged_by_what_outlives_them():
    recorded = [*range(3, 23), *range(500, 520), *range(1000, 1020)]
    span = Span(tuple(recorded), 1500, warm=3, lag=20)
    kept = [Birth(step, "kept", 64, None) for step in recorded]
    epoch = [Birth(step, "epoch", 64, None if step >= 900 else 900) for step in recorded]
    first = [Birth(step, "first", 64, None) for step in recorded[:15]]
    assert [growth.site for growth in find_growth([*kept, *epoch, *first], span)] == ["kept"]


@given(hits=st.integers(0, 200), more=st.integers(0, 200))
def test_wilsons_bound_is_below_the_share_and_that_of_scipy(hits, more):
    trials = hits + more
    low = wilson_low(hits, trials)
    assert 0 <= low <= hits / max(trials, 1)
    if trials:
        exact = stats.binomtest(hits, trials).proportion_ci(method="wilson").low
        assert low == pytest.approx(exact, abs=1e-9)


BIRTHS = st.lists(
    st.builds(
        lambda step, site, size, life: Birth(
            step, site, size, None if life is None or step + life >= 60 else step + life
        ),
        st.integers(0, 59),
        st.sampled_from("abc"),
        st.integers(1, 10**9),
        st.none() | st.integers(1, 60),
    ),
    max_size=60,
)


@given(BIRTHS)
def test_whatever_was_born_growth_is_positive_and_within_its_interval(births):
    for growth in find_growth(births, Span.of(60)):
        assert growth.bytes_per_step > 0
        assert growth.low <= growth.bytes_per_step * (1 + 1e-9)
        assert growth.bytes_per_step <= growth.high * (1 + 1e-9)
        assert growth.period >= 1


@given(BIRTHS)
def test_live_bytes_are_those_of_a_count_by_hand(births):
    span = Span.of(60)
    by_hand = [
        sum(b.nbytes for b in births if b.step <= step and (b.died is None or b.died > step))
        for step in range(60)
    ]
    assert live_bytes(births, span).tolist() == by_hand


@given(BIRTHS)
def test_what_all_dies_is_no_growth(births):
    dead = [birth._replace(died=birth.died or 60) for birth in births]
    assert find_growth(dead, Span.of(60)) == []


@given(st.lists(st.integers(0, 50), min_size=6, max_size=60))
def test_a_series_that_ends_where_it_began_does_not_rise(values):
    assert not rises([*values, *reversed(values)])


def test_one_site_alone_gives_what_all_together_give():
    births = [Birth(step, "site", 64, None) for step in range(60)]
    assert growth_of(births, Span.of(60)) == find_growth(births, Span.of(60))[0]
