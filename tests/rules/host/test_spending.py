"""How well samples tell a share, and what is promised where it goes."""

from __future__ import annotations

import pytest
from scipy import stats

from pyrometer.host.profile import HostProfile
from pyrometer.rules.host.patterns.spending import removal, spread


def profile(samples: int) -> HostProfile:
    return HostProfile(steps=2, samples=samples, interval_s=0.001, step_s=0.1)


@pytest.mark.parametrize("samples", [7, 13, 50, 400])
@pytest.mark.parametrize("share", [0.1, 0.45, 0.8, 0.96])
def test_the_true_share_lies_within_mostly(samples: int, share: float) -> None:
    drawn = range(samples + 1)
    held = [spread(profile(samples), seen / samples) for seen in drawn]
    likely = stats.binom.pmf(drawn, samples, share)
    assert sum(p for p, known in zip(likely, held, strict=True) if known.least <= share <= known.most) > 0.8


def test_all_of_a_few_samples_is_not_all_of_the_step() -> None:
    few, many = spread(profile(7), 1.0), spread(profile(700), 1.0)
    assert few.least < 0.8
    assert many.least > 0.99
    assert few.most == many.most == 1


def test_what_stays_is_of_the_least_that_it_may_take() -> None:
    gain = removal(profile(20), 0.9, stays=0.15)
    known = spread(profile(20), 0.9)
    assert gain.ratio_high == pytest.approx(1 - known.least * 0.85)
    assert gain.ratio_low == pytest.approx(1 - known.most)
