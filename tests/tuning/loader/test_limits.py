from __future__ import annotations

import pytest
from torch.utils.data import DataLoader

from pyrometer.loading.settings import LoaderSettings
from pyrometer.tuning.loader.limits import Limits, predicted_bytes, repeats_itself
from pyrometer.tuning.loader.turn import Round, Turn

ONE = Turn(
    settings=LoaderSettings(num_workers=1, prefetch_factor=2),
    rounds=[Round(1, 1.0, 0.0, False)],
    start_s=0.0,
    per_worker_bytes=100,
    bytes_per_batch=10,
)


def workers(number):
    return LoaderSettings().with_workers(number)


def test_memory_is_predicted_from_one_worker_and_a_full_queue():
    assert predicted_bytes(workers(3), [ONE]) == 300 + 7 * 10
    assert predicted_bytes(workers(1), [ONE]) == 130
    assert predicted_bytes(workers(0), [ONE]) == 0
    assert predicted_bytes(workers(3), []) is None


def test_what_needs_more_memory_than_allowed_is_refused_with_both_figures():
    limits = Limits(max_memory_bytes=250)
    assert limits.refusal(workers(2), [ONE]) is None
    assert limits.refusal(workers(3), [ONE]) == "needs 370 B, and 250 B are allowed"


def test_what_does_not_fit_into_shared_memory_is_refused_before_it_runs():
    limits = Limits(free_shared_bytes=60)
    assert limits.refusal(workers(2), [ONE]) is None
    assert "/dev/shm" in limits.refusal(workers(3), [ONE])


def test_no_workers_are_refused_by_nothing():
    limits = Limits(1, 1, workers_refused="no", one_worker_only=True)
    assert limits.refusal(workers(0), [ONE]) is None
    assert limits.refusal(workers(1), [ONE]) == "no"


@pytest.mark.parametrize(("shares", "repeats"), [(True, False), (False, True)])
def test_workers_that_repeat_each_other_are_recognised(make, shares, repeats):
    loader = DataLoader(make.Numbers(64, shares=shares), batch_size=4)
    assert repeats_itself(loader) is repeats


def test_it_cannot_be_told_from_few_batches_or_batches_that_are_all_alike(make):
    assert repeats_itself(DataLoader(make.Numbers(4), batch_size=4)) is None
    constant = make.Numbers(64)
    loader = DataLoader(constant, batch_size=4, collate_fn=len)
    assert repeats_itself(loader) is None


def test_a_map_style_dataset_cannot_repeat_itself(make):
    assert repeats_itself(DataLoader(make.Slow())) is False
