from __future__ import annotations

import pytest

from pyrometer.loading.settings import LoaderSettings
from pyrometer.tuning.loader.turn import Round, Turn

TWO = LoaderSettings(num_workers=2, prefetch_factor=2)


def turn(rounds, settings=TWO, **changes):
    return Turn(settings=settings, rounds=rounds, start_s=changes.pop("start_s", 0.0), **changes)


def test_a_round_that_begins_an_epoch_does_not_count():
    seen = turn([Round(2, 0.02, 0.0, False), Round(2, 0.50, 0.4, True), Round(2, 0.02, 0.01, False)])
    assert seen.batch_s == pytest.approx(0.01)
    assert seen.wait_fraction == pytest.approx(0.25)


def test_whole_epochs_count_with_their_start():
    seen = turn([Round(4, 0.4, 0.3, True)] * 3, by_epoch=True, epoch_batches=4, start_s=1.0)
    assert seen.batch_s == pytest.approx(0.1)


def test_the_start_is_spread_over_an_epoch_unless_workers_are_kept():
    rounds = [Round(2, 0.02, 0.0, False)] * 4
    assert turn(rounds, start_s=0.5, epoch_batches=100).batch_s == pytest.approx(0.015)
    kept = LoaderSettings(num_workers=2, prefetch_factor=2, persistent_workers=True)
    assert turn(rounds, kept, start_s=0.5, epoch_batches=100).batch_s == pytest.approx(0.01)


def test_batches_that_came_from_a_full_queue_were_not_made_in_that_time():
    seen = turn([Round(2, 0.02, 0.0, False)] * 4, drained=6)
    assert seen.batch_s == pytest.approx(0.02)


@pytest.mark.parametrize("drained", [-3, 2])
def test_a_queue_that_filled_up_or_hardly_ran_down_changes_nothing(drained):
    assert turn([Round(2, 0.02, 0.0, False)] * 4, drained=drained).batch_s == pytest.approx(0.01)


def test_turns_of_one_setting_are_pooled():
    one, other = turn([Round(2, 0.02, 0.0, False)] * 4), turn([Round(2, 0.04, 0.0, False)] * 4)
    both = one.pooled(other)
    assert both.batch_s == pytest.approx(0.015)
    assert both.interval_s[0] < 0.015 < both.interval_s[1]


def test_memory_is_of_workers_and_a_full_queue():
    seen = turn([Round(2, 0.02, 0.0, False)], per_worker_bytes=100, bytes_per_batch=7)
    assert seen.memory_bytes == 200 + 5 * 7
