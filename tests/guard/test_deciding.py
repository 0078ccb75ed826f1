"""Decisions over pairs: false alarms and power by simulation, and what each outcome asks for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pyrometer.guard.deciding import LOOKS, alpha_at, interval, judge_family, p_value


def outcome(values, *, limit=0.05, decisive=True):
    return judge_family({"a": values}, {"a": limit}, decisive=decisive)["a"]


def staged(draw, *, num_benchmarks, seed, slower=None):
    """The outcomes of a suite that is looked at as a job does; only what is undecided goes on."""
    rng = np.random.default_rng(seed)
    series = {
        f"b{i}": (draw(rng, LOOKS[-1]) + (math.log(slower) if slower and i == 0 else 0.0)).tolist()
        for i in range(num_benchmarks)
    }
    seen = {name: values[: LOOKS[0]] for name, values in series.items()}
    for look in LOOKS:
        judged = judge_family(seen, dict.fromkeys(seen, 0.05), decisive=True)
        for name, one in judged.items():
            if one.outcome is None:
                seen[name] = (
                    series[name][: min(LOOKS[LOOKS.index(look) + 1], LOOKS[-1])]
                    if look < LOOKS[-1]
                    else series[name]
                )
    return judge_family(seen, dict.fromkeys(seen, 0.05), decisive=True)


def normal(rng, n):
    return rng.normal(0, 0.015, n)


def heavy(rng, n):
    return rng.standard_t(3, n) * 0.01


def bistable(rng, n):
    """One process in eight is slow for its whole life."""
    return rng.normal(0, 0.008, n) + 0.4 * (rng.random(n) < 0.12) - 0.4 * (rng.random(n) < 0.12)


@pytest.mark.parametrize(
    "draw", [bistable, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in (normal, heavy))]
)
def test_a_suite_of_identical_benchmarks_does_not_alarm(draw):
    runs = [staged(draw, num_benchmarks=20, seed=seed) for seed in range(60)]
    alarming = sum(any(one.outcome == "regressed" for one in run.values()) for run in runs)
    assert alarming <= 1


@pytest.mark.parametrize(("draw", "least"), [(normal, 58), (heavy, 56), (bistable, 35)])
def test_a_true_slowdown_is_found_among_benchmarks_that_did_not_change(draw, least):
    runs = [staged(draw, num_benchmarks=5, seed=seed, slower=1.06) for seed in range(60)]
    assert sum(run["b0"].outcome == "regressed" for run in runs) >= least


def test_what_is_proved_to_stay_within_the_limit_is_a_warning():
    judged = outcome([0.030, 0.031, 0.029, 0.030, 0.030])
    assert judged.outcome == "unchanged"
    assert judged.warning == "worse by 3.0 %, within the limit of 5.0 %"


def test_a_limit_of_its_own_is_kept():
    assert outcome([0.030, 0.031, 0.029, 0.030, 0.030], limit=0.02).outcome == "regressed"


def test_tails_fail_only_where_all_of_the_interval_is_beyond_the_limit():
    values = [0.2, 0.3, 0.1, 0.25, 0.15]
    assert outcome(values, limit=0.2, decisive=False).outcome != "regressed"
    assert outcome([0.5, 0.51, 0.49, 0.5, 0.5], limit=0.2, decisive=False).outcome == "regressed"


def test_one_that_is_faster_improved():
    assert outcome([-0.1, -0.11, -0.09, -0.1, -0.1]).outcome == "improved"


@pytest.mark.parametrize(
    "values", [[0.1], [0.3, -0.2, 0.1, -0.3, 0.2], [0.1016, 0.1013], [0.1, 0.1, 0.1, 0.1]]
)
def test_too_little_is_no_decision(values):
    assert outcome(values).outcome is None


def test_pairs_that_agree_to_the_last_digit_decide():
    assert outcome([0.0] * 5).outcome == "unchanged"
    assert outcome([math.log(1.2)] * 5).outcome == "regressed"


def test_an_interval_excludes_no_change_where_the_test_finds_one():
    rng = np.random.default_rng(3)
    for _ in range(50):
        series = {f"b{i}": rng.normal(0.01 * i, 0.02, 8).tolist() for i in range(5)}
        judged = judge_family(series, dict.fromkeys(series, 0.05), decisive=True)
        found = [one for one in judged.values() if one.low > 0 or one.high < 0]
        ranked = sorted(p_value(values) for values in series.values())
        expected = max(
            (rank for rank, p in enumerate(ranked, 1) if p <= rank * alpha_at(8) / len(ranked)), default=0
        )
        assert len(found) == expected or any(one.outcome == "unchanged" for one in judged.values())


def test_an_interval_covers_the_truth():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        _, low, high = interval(rng.normal(0.03, 0.02, 12).tolist(), 0.05)
        covered += low <= 0.03 <= high
    assert 0.90 <= covered / 400 <= 0.99
