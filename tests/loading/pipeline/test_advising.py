from __future__ import annotations

import pytest

from pyrometer.loading.advising import advise
from pyrometer.loading.report import LoaderReport, StageTime
from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.shared_times import BatchCost
from pyrometer.loading.stages import LoadingPass, StepTimes, WorkerStart
from pyrometer.loading.watched import Pull

NONE, TWO = LoaderSettings(), LoaderSettings(num_workers=2, prefetch_factor=2)


def seen(settings=NONE, *, data_s=0.04, compute_s=0.02, dataset_s=0.04, busy_s=0.0, cpu_s=None, **changes):
    phases = {"data": data_s, "forward": compute_s, "rest": 0.0}
    step = StepTimes(data_s + compute_s, phases, [Pull(data_s, 0.0, 0, False, 0.0)])
    cost = BatchCost(0.0, dataset_s, busy_s, 0.0, busy_s if cpu_s is None else cpu_s, 0.0, 0.0, 0.0)
    return LoadingPass(settings, [step] * 8, [cost] * 8, cpus=changes.pop("cpus", 2.0), **changes)


def report(verdict, one, **changes):
    return LoaderReport(
        verdict=verdict,
        sentence="",
        settings=one.settings,
        measured_step_s=one.step_s,
        data_share=one.data_s / one.step_s,
        wait_s=one.data_s,
        wait_fraction=one.wait_fraction,
        first_batch_s=changes.pop("first_batch_s", 0.0),
        free_data_ratio=1.0,
        **changes,
    )


def slugs(verdict, one, **changes):
    return [advice.slug for advice in advise(report(verdict, one, **changes), one)]


def test_waiting_for_storage_calls_for_workers_with_the_gain_of_the_model():
    one = seen()
    advice = advise(report("serial", one), one)[0]
    assert advice.slug == "more-workers"
    assert advice.rewrite == "num_workers=2, prefetch_factor=2"
    assert advice.saves_s == pytest.approx(0.04)


def test_workers_whose_start_takes_longer_than_they_save_are_not_advised():
    tried = WorkerStart(each_s=10.0)
    assert [
        a for a in _workers(tried, epoch_batches=4) if not a.rewrite.endswith("persistent_workers=True")
    ] == []
    assert len(_workers(tried, epoch_batches=100_000)) == 1
    assert _workers(tried, epoch_batches=1) == []
    assert _workers(WorkerStart(refused="no pickle"), epoch_batches=100_000) == []


def _workers(tried, **changes):
    one = seen(tried=tried)
    return [a for a in advise(report("serial", one, **changes), one) if a.slug == "more-workers"]


def test_handing_over_may_cost_more_than_workers_save():
    tried = WorkerStart(overhead_s=0.1, receive_s=0.06)
    assert _workers(tried, epoch_batches=100_000) == []


@pytest.mark.parametrize("batches", [2, 3, 8, 20, 1000])
def test_a_promise_leaves_what_nothing_can_hide(batches):
    one = seen(data_s=0.032, dataset_s=0.032, compute_s=0.002, tried=WorkerStart())
    advice = advise(report("serial", one, epoch_batches=batches), one)[0]
    workers = int(advice.rewrite.split("num_workers=")[1].split(",")[0])
    assert workers <= min(batches, 8)
    assert "there are only 2 CPUs" in advice.effect or workers <= 2
    first_and_steps_s = 0.032 + batches * 0.002
    assert one.step_s - advice.saves_s >= first_and_steps_s / batches - 1e-9


def test_no_number_of_workers_makes_up_for_missing_cpus():
    one = seen(TWO, data_s=0.08, dataset_s=0.2, busy_s=0.2)
    assert slugs("starved-steady", one) == ["cheaper-samples"]


def test_both_are_advised_where_workers_help_but_not_enough():
    one = seen(data_s=0.2, dataset_s=0.2, busy_s=0.2)
    assert set(slugs("serial", one)) == {"more-workers", "cheaper-samples"}


def test_decoding_with_several_threads_in_each_worker_is_told():
    one = seen(TWO, data_s=0.0, busy_s=0.04, cpu_s=0.12, compute_s=0.04)
    assert slugs("balanced", one) == ["one-thread-per-worker"]


def test_pinned_memory_is_for_copies_to_a_cuda_device():
    copying = StageTime(name="h2d", where="device", per_step_s=0.002, share=0.1)
    one = seen(TWO, data_s=0.0, busy_s=0.04, device="cuda")
    assert slugs("balanced", one, stages=[copying]) == ["pin-memory"]
    advice = advise(report("balanced", one, stages=[copying]), one)[0]
    assert "pin_memory=True" in advice.rewrite
    assert slugs("balanced", seen(TWO, data_s=0.0, busy_s=0.04), stages=[copying]) == []


def test_a_queue_that_fills_the_shared_memory_is_told_with_what_to_set():
    one = seen(TWO, data_s=0.0, busy_s=0.04)
    wanting = report("balanced", one, shm_needed_bytes=60 * 2**20, shm_free_bytes=64 * 2**20)
    assert "--shm-size=120m" in advise(wanting, one)[0].effect


@pytest.mark.parametrize("verdict", ["healthy", "balanced", "no-loader"])
def test_a_loader_that_keeps_up_with_the_workers_that_it_needs_is_left_alone(verdict):
    assert slugs(verdict, seen(TWO, data_s=0.0)) == []


def test_the_largest_gain_comes_first():
    one = seen(TWO, data_s=0.03, dataset_s=0.1)
    found = advise(report("starved-steady", one, epoch_batches=300, first_batch_s=2.0), one)
    assert [advice.slug for advice in found] == ["more-workers", "persistent-workers"]
    gains = [advice.saves_s for advice in found]
    assert gains == sorted(gains, reverse=True)
