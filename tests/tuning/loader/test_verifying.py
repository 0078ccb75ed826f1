from __future__ import annotations

import itertools
import random

import pytest

from pyrometer.loading.settings import LoaderSettings
from pyrometer.tuning.loader.turn import Round, Turn
from pyrometer.tuning.loader.verifying import FIRST_LOOK, LAST_LOOK, not_slower, prove

OLD, NEW = LoaderSettings(), LoaderSettings(num_workers=2, prefetch_factor=2)


def proved(ratio, noise=0.02, seed=0, deadline_s=1e9, old=OLD):
    coin = random.Random(seed)
    order = []

    def run(settings):
        order.append(settings)
        step_s = (ratio if settings == NEW else 1.0) * (1 + coin.gauss(0, noise))
        return Turn(settings=settings, rounds=[Round(1, step_s, 0.0, False)], start_s=0.0)

    ticks = itertools.count()
    gain = prove(run, old, NEW, margin=0.05, deadline_s=deadline_s, now_s=lambda: float(next(ticks)))
    return gain, order


@pytest.mark.parametrize(("ratio", "outcome"), [(0.5, "faster"), (2.0, "slower"), (1.0, "same")])
def test_a_clear_ratio_is_decided_with_an_interval_around_it(ratio, outcome):
    gain, _ = proved(ratio)
    assert gain.outcome == outcome
    assert gain.ci_low < ratio < gain.ci_high


def test_a_large_gain_is_decided_at_the_first_look():
    gain, _ = proved(0.25, noise=0.2)
    assert gain.num_blocks == FIRST_LOOK


def test_both_sides_run_equally_often_and_not_always_in_one_order():
    _, order = proved(1.0, noise=0.3)
    assert order.count(OLD) == order.count(NEW) == LAST_LOOK
    assert len({order[n] for n in range(0, len(order), 2)}) == 2


@pytest.mark.exhaustive
def test_alike_settings_are_hardly_ever_called_different():
    outcomes = [proved(1.0, noise=0.15, seed=seed)[0].outcome for seed in range(40)]
    assert sum(outcome in {"faster", "slower"} for outcome in outcomes) <= 4


def test_without_time_there_is_no_gain_and_with_little_no_decision():
    assert proved(0.5, deadline_s=-1.0)[0] is None
    gain, _ = proved(0.5, deadline_s=9.0)
    assert gain.outcome == "undecided"
    assert gain.num_blocks < FIRST_LOOK


def test_a_smaller_setting_need_only_be_no_slower():
    gain, _ = proved(0.97, noise=0.01, old=LoaderSettings(num_workers=8, prefetch_factor=2))
    assert not_slower(gain, 0.05)
    assert gain.num_blocks == FIRST_LOOK
    assert not not_slower(proved(1.2, noise=0.01)[0], 0.05)
