from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.shared_times import BatchCost
from pyrometer.loading.stages import LoadingPass, StepTimes, stage_times
from pyrometer.loading.watched import Pull

TWO = LoaderSettings(num_workers=2, prefetch_factor=2)


def pull(wait_s, *, ready=None, first=False, done_s=0.0, cpu_s=0.0):
    return Pull(wait_s, cpu_s, ready, first, done_s)


def step(data_s, compute_s, *, first=False, ready=None, done_s=0.0):
    phases = {"data": data_s, "forward": compute_s, "rest": 0.0}
    return StepTimes(data_s + compute_s, phases, [pull(data_s, first=first, ready=ready, done_s=done_s)])


def cost(started_s=0.0, dataset_s=0.03, busy_s=0.01, queued_s=0.0, collate_s=0.002):
    return BatchCost(started_s, dataset_s, busy_s, queued_s, busy_s, collate_s, collate_s, 0.0)


def test_without_workers_the_parts_add_up_to_the_step():
    seen = LoadingPass(LoaderSettings(), [step(0.032, 0.02)] * 6, [cost()] * 6)
    stages = {stage.name: stage for stage in stage_times(seen)}
    assert [stage.where for stage in stages.values()] == ["main"] * len(stages)
    assert stages["fetch"].per_step_s == pytest.approx(0.02)
    assert stages["decode"].per_step_s == pytest.approx(0.01)
    assert stages["decode"].cpu_share == pytest.approx(1.0)
    assert sum(stage.share for stage in stages.values()) == pytest.approx(1.0)
    assert seen.model.step_s(0) == pytest.approx(seen.step_s)


def test_time_without_a_cpu_is_not_storage():
    seen = LoadingPass(TWO, [step(0.0, 0.02)] * 6, [cost(queued_s=0.02)] * 6)
    stages = {stage.name: stage for stage in stage_times(seen)}
    assert stages["fetch"].per_step_s == pytest.approx(0.0, abs=1e-12)
    assert stages["decode"].per_step_s == pytest.approx(0.03)
    assert stages["decode"].cpu_share == pytest.approx(1 / 3)
    assert seen.model.batch_cpu_s == pytest.approx(0.032)


def test_the_first_batch_of_an_epoch_is_apart():
    steps = [step(0.5, 0.02, first=True), *[step(0.01, 0.02)] * 12]
    seen = LoadingPass(TWO, steps)
    assert seen.first_batch_s == 0.5
    assert seen.step_s == pytest.approx(0.03)
    assert seen.wait_fraction == pytest.approx(1 / 3)


def test_a_queue_that_was_full_at_first_does_not_count():
    steps = [step(0.0, 0.02, first=True), *[step(0.0, 0.02)] * 4, *[step(0.02, 0.02)] * 8]
    assert LoadingPass(TWO, steps).step_s == pytest.approx(0.04)


def test_when_every_step_begins_an_epoch_all_count():
    seen = LoadingPass(TWO, [step(0.1, 0.02, first=True)] * 3)
    assert seen.step_s == pytest.approx(0.12)


def test_a_batch_that_was_ready_was_handed_over_not_waited_for():
    steps = [step(0.003, 0.02, ready=3)] * 8
    stages = {stage.name: stage.per_step_s for stage in stage_times(LoadingPass(TWO, steps))}
    assert stages["receive"] == pytest.approx(0.003)
    assert stages["wait"] == pytest.approx(0.0, abs=1e-12)


def test_a_late_batch_is_no_handover_even_if_others_are_ready():
    steps = [step(0.001, 0.02, ready=4)] * 6 + [step(0.1, 0.02, ready=2)] * 2
    stages = {stage.name: stage.per_step_s for stage in stage_times(LoadingPass(TWO, steps))}
    assert stages["receive"] == pytest.approx(0.001)


def test_occupancy_is_the_full_share_of_the_queue():
    assert LoadingPass(TWO, [step(0.0, 0.02, ready=3)] * 8).occupancy == 0.75
    assert LoadingPass(LoaderSettings(), [step(0.0, 0.02)] * 8).occupancy is None


def test_workers_are_busy_for_the_time_that_they_make_batches():
    steps = [step(0.0, 0.02, done_s=0.1 * n) for n in range(10)]
    costs = [cost(started_s=0.1 * n, dataset_s=0.05, collate_s=0.0) for n in range(10)]
    seen = LoadingPass(LoaderSettings(num_workers=1, prefetch_factor=1), steps, costs)
    assert seen.worker_busy == pytest.approx(0.5, abs=0.06)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(1e-4, 1)), min_size=3, max_size=30),
    st.integers(0, 4),
)
def test_the_shares_of_the_training_process_add_up_to_one(times, workers):
    settings = LoaderSettings(num_workers=workers, prefetch_factor=2 if workers else None)
    seen = LoadingPass(settings, [step(data_s, compute_s, ready=1) for data_s, compute_s in times])
    shares = [stage.share for stage in stage_times(seen) if stage.where == "main"]
    assert sum(shares) == pytest.approx(1.0)
