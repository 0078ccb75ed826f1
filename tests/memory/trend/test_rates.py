"""False alarms and power, by simulation.

Bounds are binomial: a test of a rate fails only where the count would come by chance in less than one case of 10,000.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from representative import every
from scipy.stats import binom

from pyrometer.memory.trend.judge import FALSE_ALARM_RATE

NUM = 100
BOUNDED = (
    "constant",
    "flat noise",
    "autoregressive .95",
    "plateau tau=30",
    "plateau tau=150",
    "plateau tau=400",  # of 600 readings
    "plateau tau=1000, quiet",
    "one step up",
    "three steps up",
    "sawtooth of gc",
    "irregular sawtooth",
    "variable shapes",
    "epochs of 40 steps",
)


def most(rate: float) -> int:
    return int(binom.ppf(1 - 1e-4, NUM, rate))


def least(rate: float) -> int:
    return int(binom.ppf(1e-4, NUM, rate))


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_bounded_is_called_a_leak_no_more_often_than_stated(verdicts, name):
    assert verdicts(name)["leak"] <= most(FALSE_ALARM_RATE)


def test_false_alarms_of_all_bounded_series_together_keep_the_stated_rate(verdicts):
    alarms = sum(verdicts(name)["leak"] for name in BOUNDED)
    assert alarms <= binom.ppf(1 - 1e-4, NUM * len(BOUNDED), FALSE_ALARM_RATE)


@pytest.mark.parametrize("length", every(3, [200, 100, 1500]))
@pytest.mark.parametrize("name", ["flat noise", "autoregressive .95", "sawtooth of gc", "variable shapes"])
def test_the_rate_of_false_alarms_holds_at_other_lengths(verdicts, name, length):
    assert verdicts(name, length)["leak"] <= most(FALSE_ALARM_RATE)


def test_a_plateau_too_slow_for_the_readings_is_one_that_the_reason_does_not_exclude(series):
    rng = np.random.default_rng(2)
    judged = [
        series.judge_series(range(200), series.readings(series.plateau(400), rng, 200)) for _ in range(NUM)
    ]
    leaks = [verdict.reason for verdict in judged if verdict.verdict == "leak"]
    excluded = [float(re.search(r"beyond ([\d,]+) steps", reason)[1].replace(",", "")) for reason in leaks]
    assert len(leaks) > NUM / 2
    assert sum(below < 400 for below in excluded) >= 0.9 * len(leaks)


def test_a_random_walk_is_rarely_called_a_leak(verdicts):
    assert verdicts("random walk")["leak"] <= most(0.03)


@pytest.mark.parametrize(
    ("name", "power"),
    [
        ("leak .05, noise 5", 0.85),
        ("leak .2, noise 5", 0.93),
        ("leak .2, exact", 1.0),
        ("leak 1 each 20 steps", 0.9),
        ("leak 2, sporadic", 0.7),
        ("leak .2, shapes 350", 0.8),
        ("leak .5, shapes 350", 0.93),
        ("leak .1, sawtooth 70", 0.9),
        ("leak .2 after warm-up", 0.9),
    ],
)
def test_leaks_are_found(verdicts, name, power):
    assert verdicts(name)["leak"] >= least(power)


@pytest.mark.parametrize(
    "name", ["leak .05, noise 5", "leak .2, noise 5", "leak .5, shapes 350", "leak .2, autoregressive"]
)
def test_what_leaks_is_never_called_harmless(verdicts, name):
    counts = verdicts(name)
    assert counts["stable"] + counts["warm-up"] <= most(0.01)


def test_longer_runs_decide_more(verdicts):
    assert verdicts("variable shapes", 1500)["stable"] > verdicts("variable shapes", 600)["stable"] + 20
    assert (
        verdicts("leak 20 per 100-step epoch", 1500)["leak"]
        > verdicts("leak 20 per 100-step epoch")["leak"] + 50
    )


def test_what_is_level_is_called_stable(verdicts):
    assert verdicts("constant")["stable"] == NUM
    assert verdicts("flat noise")["stable"] >= least(0.9)
    assert verdicts("plateau tau=30")["stable"] >= least(0.95)
