from __future__ import annotations

import contextlib
import multiprocessing
import re
import time

import pytest
import torch

import pyrometer as pm
from pyrometer.errors import InputError, UserProgramError
from pyrometer.loading.pipeline import observe_loading
from pyrometer.loading.report import LoaderReport
from pyrometer.loading.watched import WatchedBatches
from pyrometer.record import from_json, to_json


def stages(report):
    return {stage.name: stage for stage in report.stages}


def slugs(report):
    return [advice.slug for advice in report.advice]


def advised(loader_arguments, report, slug):
    """The loader's arguments after the advice was followed, as it is written."""
    use = next(advice.rewrite for advice in report.advice if advice.slug == slug)
    changes = dict(re.findall(r"(\w+)=(\w+)", use))
    numbers = {name: int(text) if text.isdigit() else text == "True" for name, text in changes.items()}
    return {**loader_arguments, **numbers}


def paced(loader, num_batches=24, epochs=1):
    """Mean time per batch without a step, the first batch apart where there is one epoch."""
    with contextlib.closing(WatchedBatches(loader)) as own:
        if epochs > 1:
            list(own)
            start_s = time.perf_counter()
            number = sum(1 for _ in range(epochs - 1) for _ in own)
            return (time.perf_counter() - start_s) / number
        next(own)
        start_s = time.perf_counter()
        for _ in range(num_batches):
            next(own)
        return (time.perf_counter() - start_s) / num_batches


@pytest.mark.measuring
def test_without_workers_loading_and_computing_take_turns(make):
    loader = make.DataLoader(make.Slow(0.01), batch_size=4)
    report = observe_loading(make.training(loader, 0.01), steps=8)
    assert report.verdict == "serial"
    assert 0.5 < report.data_share < 0.95
    assert report.measured_step_s == pytest.approx(report.predicted_step_s, rel=0.5)
    fetch = stages(report)["fetch"]
    assert fetch.where == "main"
    assert fetch.per_step_s > 0.035
    assert report.occupancy is report.worker_busy is report.worker_memory_bytes is None


@pytest.mark.measuring
def test_workers_that_cannot_keep_up_starve_the_step(make):
    loader = make.DataLoader(make.Slow(0.02), batch_size=4, num_workers=1)
    report = observe_loading(make.training(loader, 0.005), steps=14)
    assert report.verdict == "starved-steady"
    assert report.worker_busy > 0.85
    assert report.occupancy < 0.2
    assert report.measured_step_s == pytest.approx(report.predicted_step_s, rel=0.5)
    assert stages(report)["fetch"].where == "worker"
    assert stages(report)["wait"].per_step_s > 0.04


@pytest.mark.measuring
def test_workers_with_time_left_keep_the_queue_full(make):
    loader = make.DataLoader(make.Slow(0.0), batch_size=4, num_workers=2)
    report = observe_loading(make.training(loader, 0.2), steps=10)
    assert report.verdict == "healthy"
    assert report.occupancy > 0.8
    assert report.worker_busy < 0.5
    assert report.queue_batches == 4
    assert report.worker_memory_bytes > 2**20
    assert report.shm_needed_bytes == 5 * report.batch_bytes


@pytest.mark.measuring
def test_each_micro_batch_of_a_step_counts(make):
    loader = make.DataLoader(make.Slow(0.005), batch_size=2)
    work = make.training(loader, 0.001)
    work.accumulate = 3
    report = observe_loading(work, steps=5)
    making = stages(report)
    # Six samples that sleep 5 ms each; what the machine takes for itself meanwhile counts as decoding.
    assert making["fetch"].per_step_s + making["decode"].per_step_s > 0.025


@pytest.mark.measuring
def test_short_epochs_wait_for_their_workers_and_keeping_them_helps(make):
    arguments = {"batch_size": 2, "num_workers": 2}
    report = observe_loading(make.training(make.DataLoader(make.Slow(size=8), **arguments), 0.002), steps=16)
    assert report.verdict == "slow-start"
    assert report.epoch_batches == 4
    better = advised(arguments, report, "persistent-workers")
    assert better == {**arguments, "prefetch_factor": 2, "persistent_workers": True}
    old_s, new_s = (paced(make.DataLoader(make.Slow(size=8), **a), epochs=6) for a in (arguments, better))
    assert new_s < 0.7 * old_s


@pytest.mark.measuring
def test_more_workers_are_advised_and_help_as_predicted(make):
    arguments = {"batch_size": 4}
    report = observe_loading(make.training(make.DataLoader(make.Slow(0.02), **arguments), 0.02), steps=6)
    better = advised(arguments, report, "more-workers")
    assert better["num_workers"] >= 4
    after = observe_loading(make.training(make.DataLoader(make.Slow(0.02), **better), 0.02), steps=24)
    saved_s = report.measured_step_s - after.measured_step_s
    assert saved_s > 0.4 * report.advice[0].saves_s
    assert report.advice[0].slug == "more-workers"


def test_epochs_of_one_batch_get_no_workers(make):
    report = observe_loading(make.training(make.DataLoader(make.Slow(size=16), batch_size=16)), steps=8)
    assert report.epoch_batches == 1
    assert "more-workers" not in slugs(report)


def test_workers_that_cannot_be_started_are_not_advised(make):
    dataset = make.Slow(0.01, size=64)
    dataset.transform = lambda x: x
    loader = make.DataLoader(dataset, batch_size=4)
    # As if spawn were the default, which a loader without workers cannot be told.
    loader._DataLoader__multiprocessing_context = multiprocessing.get_context("spawn")
    report = observe_loading(make.training(loader), steps=4)
    assert "more-workers" not in slugs(report)
    assert any("cannot be started by spawn" in note for note in report.notes)


@pytest.mark.measuring
def test_no_more_workers_are_advised_than_an_epoch_has_batches_and_the_promise_is_kept(make):
    arguments = {"batch_size": 8}
    dataset = make.Slow(0.01, size=32)
    report = observe_loading(make.training(make.DataLoader(dataset, **arguments)), steps=8)
    better = advised(arguments, report, "more-workers")
    assert 1 < better["num_workers"] <= 4
    assert better["persistent_workers"] is True, "an epoch is over before workers are started"
    old_s, new_s = (paced(make.DataLoader(dataset, **a), epochs=4) for a in (arguments, better))
    assert old_s - new_s > 0.5 * report.advice[0].saves_s


@pytest.mark.measuring
def test_tiny_samples_are_better_made_in_the_training_process(make):
    arguments = {"batch_size": 2, "num_workers": 2}
    report = observe_loading(make.training(make.DataLoader(make.Slow(), **arguments)), steps=60)
    better = advised(arguments, report, "no-workers")
    assert better == {**arguments, "num_workers": 0}
    old_s, new_s = (paced(make.DataLoader(make.Slow(), **a), 100) for a in (arguments, better))
    assert new_s < 0.7 * old_s


@pytest.mark.measuring
@pytest.mark.slow
def test_a_deeper_queue_is_advised_for_uneven_batches_and_helps(make):
    dataset = make.Slow(0.0, every=12, longer_s=0.25)
    arguments = {"batch_size": 1, "num_workers": 1, "prefetch_factor": 2}
    report = observe_loading(make.training(make.DataLoader(dataset, **arguments), 0.03), steps=50)
    assert report.verdict == "bursty"
    better = advised(arguments, report, "deeper-queue")
    assert better["prefetch_factor"] == 8
    after = observe_loading(make.training(make.DataLoader(dataset, **better), 0.03), steps=50)
    assert after.data_share < 0.6 * report.data_share


@pytest.mark.measuring
@pytest.mark.slow
def test_fewer_workers_are_advised_where_most_are_idle_and_the_step_stays(make):
    arguments = {"batch_size": 2, "num_workers": 4}
    report = observe_loading(make.training(make.DataLoader(make.Slow(0.001), **arguments), 0.2), steps=10)
    better = advised(arguments, report, "fewer-workers")
    assert better["num_workers"] == 1
    after = observe_loading(make.training(make.DataLoader(make.Slow(0.001), **better), 0.2), steps=10)
    assert after.measured_step_s < 1.2 * report.measured_step_s
    assert after.worker_memory_bytes < report.worker_memory_bytes


@pytest.mark.measuring
def test_work_for_a_cpu_is_told_from_waiting_for_a_disk(make, tmp_path):
    loader = make.DataLoader(make.Compressed(tmp_path), batch_size=16)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 96 * 96, 1))
    work = pm.Training(
        model, torch.nn.functional.mse_loss, torch.optim.SGD(model.parameters(), lr=1e-3), loader
    )
    found = stages(observe_loading(work, steps=6))
    assert found["decode"].per_step_s > 3 * found["fetch"].per_step_s


@pytest.mark.measuring
def test_a_healthy_loader_gets_no_advice_on_speed(make):
    loader = make.DataLoader(make.Slow(), batch_size=4, num_workers=1)
    report = observe_loading(make.training(loader, 0.2), steps=8)
    assert report.verdict in {"healthy", "balanced"}
    assert not {"more-workers", "deeper-queue", "no-workers", "cheaper-samples"} & set(slugs(report))


def test_batches_in_memory_are_not_observed(make):
    batches = [(torch.zeros(2, 4), torch.zeros(2, 1))] * 3
    assert observe_loading(make.training(batches)) is None


def test_an_iterable_that_is_no_loader_is_timed_all_the_same(make):
    class Batches:
        def __iter__(self):
            for _ in range(50):
                time.sleep(0.01)
                yield torch.zeros(2, 4), torch.zeros(2, 1)

    report = observe_loading(make.training(Batches()), steps=6)
    assert report.verdict == "no-loader"
    assert report.data_share > 0.5
    assert report.predicted_step_s is None
    assert stages(report)["wait"].where == "main"


def test_the_training_and_the_random_state_are_as_before(make):
    loader = make.DataLoader(make.Slow(), batch_size=4, shuffle=True)
    work = make.training(loader)
    before = [parameter.detach().clone() for parameter in work.parts.model.parameters()]
    state = torch.get_rng_state()
    observe_loading(work, steps=5)
    assert torch.equal(torch.get_rng_state(), state)
    after = list(work.parts.model.parameters())
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert work.batches is loader


def test_a_report_is_the_same_after_json(make):
    report = observe_loading(make.training(make.DataLoader(make.Slow(), batch_size=4)), steps=5)
    assert from_json(LoaderReport, to_json(report)) == report


@pytest.mark.parametrize("arguments", [{"steps": 0}, {"steps": 1.5}, {"budget_s": 0.0}, {"budget_s": "4"}])
def test_figures_that_make_no_sense_are_refused(make, arguments):
    with pytest.raises(InputError, match=f"{next(iter(arguments))}: got"):
        observe_loading(make.training(make.DataLoader(make.Slow())), **arguments)


def test_only_a_training_has_a_loader():
    with pytest.raises(InputError, match=r"a pm\.Training"):
        observe_loading(torch.nn.Linear(1, 1))


def test_a_failing_step_ends_the_workers_and_says_what_failed(make):
    work = make.training(make.DataLoader(make.Slow(), batch_size=4, num_workers=2))

    def broken(output, target):
        raise ValueError("no target")

    work.parts = work.parts._replace(loss=broken)
    with pytest.raises(UserProgramError, match="a training step raised ValueError: no target"):
        observe_loading(work, steps=5)
