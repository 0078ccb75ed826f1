"""The interval of a confirmation holds the ratio of another pair of processes."""

from __future__ import annotations

import numpy as np
import pytest

from pyrometer.tuning.search.confirming import expected_next


@pytest.mark.parametrize("spread", [0.002, 0.02, 0.1])
def test_another_pair_is_within_the_interval_as_often_as_is_said(spread):
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(2000):
        *known, following = np.exp(rng.normal(np.log(0.5), spread, 5))
        _, low, high = expected_next(known)
        held += low <= following <= high
    assert held / 2000 > 0.935


def test_a_single_pair_bounds_nothing():
    assert expected_next([0.5])[1:] == (0.0, float("inf"))
