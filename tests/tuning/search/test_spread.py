"""Confirmations of other recipes say how far pairs of processes vary on a machine."""

from __future__ import annotations

import numpy as np
import pytest

from pyrometer.tuning.search.confirming import expected_next
from pyrometer.tuning.search.spread import UNKNOWN, Spread, spread_of

MACHINES = {"loaded": (0.1, 2.5), "steady": (0.02, 8.0), "alike": (0.05, 200.0)}
"""Typical spread of ln ratios, and the degrees of freedom: how alike the spreads of different programs are."""


def confirmed(machine, number, rng, num_pairs=4):
    """Pairs of so many programs, each with a spread of its own."""
    typical, degrees = MACHINES[machine]
    spreads = typical * np.sqrt(degrees / rng.chisquare(degrees, number))
    return [rng.normal(0, spread, num_pairs).tolist() for spread in spreads]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("number", [4, 8, 30])
def test_with_what_is_known_intervals_are_shorter_and_hold_as_often(machine, number):
    rng = np.random.default_rng(3)
    held, shorter = 0, []
    for _ in range(600):
        spread = spread_of(confirmed(machine, number, rng))
        ((*known, following),) = confirmed(machine, 1, rng, num_pairs=5)
        _, low, high = expected_next(np.exp(known), spread=spread)
        _, wide_low, wide_high = expected_next(np.exp(known))
        held += low <= np.exp(following) <= high
        shorter.append(np.log(high / low) / np.log(wide_high / wide_low))
    assert held / 600 > 0.93
    assert np.exp(np.mean(np.log(shorter))) < 0.95


def test_pairs_that_agree_by_luck_claim_less_on_a_machine_that_varies():
    spread = spread_of(confirmed("loaded", 30, np.random.default_rng(1)))
    lucky = [0.9, 0.901, 0.899, 0.9]
    assert expected_next(lucky)[2] < 1 < expected_next(lucky, spread=spread)[2]


def test_a_steady_machine_keeps_what_its_pairs_show():
    spread = spread_of(confirmed("steady", 30, np.random.default_rng(1)))
    assert expected_next([0.9, 0.91, 0.89, 0.9], spread=spread)[2] < 1


def test_what_is_found_is_what_was_drawn():
    spread = spread_of(confirmed("loaded", 4000, np.random.default_rng(1)))
    assert spread.variance == pytest.approx(0.1**2, rel=0.15)
    assert spread.degrees == pytest.approx(2.5, rel=0.15)


@pytest.mark.parametrize("few", [[], [[0.1, 0.2]] * 3, [[0.1]] * 20], ids=["none", "three", "single pairs"])
def test_of_few_confirmations_nothing_is_learned(few):
    assert spread_of(few) == UNKNOWN


@pytest.mark.parametrize("alike", [[0.1, 0.2], [0.1, 0.1, 0.1]], ids=["the same", "no spread at all"])
def test_confirmations_that_resemble_each_other_claim_no_more_degrees_than_there_are(alike):
    assert spread_of([alike] * 6).degrees == 6


def test_confirmations_that_have_nothing_in_common_claim_little():
    far_apart = [[0.0, 10.0 ** (n % 5 - 3)] for n in range(20)]
    assert spread_of(far_apart).degrees < 1
    assert isinstance(spread_of(far_apart), Spread)
