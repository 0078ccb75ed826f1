"""Changes on the way: needed or measured, on record, and undone where they did not pay."""

from __future__ import annotations

import itertools
import logging

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pyrometer as pm
from pyrometer.bench.clock import HostClock
from pyrometer.loading.settings import LoaderSettings
from pyrometer.tuning.loop.adjusting import TRIAL_STEPS, Adjusting
from pyrometer.tuning.loop.batches import PositionedBatches
from pyrometer.tuning.loop.step import LoopStep
from pyrometer.tuning.loop.timing import StepTimes


class Narrow(nn.Module):
    """A model that runs out of memory on batches above a size."""

    def __init__(self, *parts, limit):
        super().__init__()
        torch.default_generator.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(6, 8), *parts, nn.Linear(8, 3))
        self.limit = limit
        self.sizes = []

    def forward(self, x):
        if len(x) > self.limit:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        self.sizes.append(len(x))
        return self.net(x)


def loop_of(model, callbacks=(), number=24, **options):
    numbers = torch.Generator().manual_seed(1)
    data = TensorDataset(
        torch.randn(number, 6, generator=numbers), torch.randint(3, (number,), generator=numbers)
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    settings = {"accumulate": options.pop("accumulate", 1)}
    work = pm.Training(model, nn.CrossEntropyLoss(), optimizer, DataLoader(data, 8), **settings)
    return pm.TrainingLoop(work, callbacks=callbacks, **options)


class Hearing:
    def __init__(self):
        self.heard = []

    def on_adjust(self, adjustment):
        self.heard.append(adjustment)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_out_of_memory_the_same_step_is_taken_in_smaller_parts(accumulate, caplog):
    whole, cut, hearing = Narrow(limit=8), Narrow(limit=3), Hearing()
    expected = loop_of(whole, accumulate=accumulate).run(epochs=2)
    loop = loop_of(cut, [hearing], accumulate=accumulate)
    with caplog.at_level(logging.WARNING):
        run = loop.run(epochs=2)
    assert [(one.before, one.after, one.reason) for one in run.adjustments] == [
        (1, 2, "memory ran out"),
        (2, 4, "memory ran out"),
    ]
    assert max(cut.sizes) == 2
    assert run.losses == pytest.approx(expected.losses)
    for one, other in zip(whole.parameters(), cut.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    assert hearing.heard
    assert sum("training adjusted: step 0: micro_batches 1 → 2" in text for text in caplog.messages) == 2
    assert "4 micro-batches" in loop.workload().name
    with loop.workload().open() as session:
        session.step()


@pytest.mark.parametrize(
    ("model", "options", "why"),
    [
        (Narrow(limit=4), {"adjust": ()}, 'adjust= does not allow "memory"'),
        (Narrow(nn.BatchNorm1d(8), limit=4), {}, "BatchNorm1d gives other results for parts of a batch"),
        (Narrow(limit=0), {}, "a batch of 8 cannot be cut into 16"),
    ],
)
def test_what_would_train_otherwise_runs_out_of_memory_as_before(model, options, why):
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate") as caught:
        loop_of(model, **options).run(3)
    assert caught.value.__notes__ == [f"the loop did not cut batches into micro-batches: {why}"]


def test_a_resumed_training_cuts_as_it_did(tmp_path):
    loop_of(Narrow(limit=4), checkpoints=tmp_path).run(3)
    model = Narrow(limit=4)
    run = loop_of(model, checkpoints=tmp_path).run(6)
    assert run.first_step == 3
    assert run.adjustments == []
    assert set(model.sizes) == {4}


class Bench:
    """Adjusting, with the times of steps told by hand."""

    def __init__(self, allowed=("memory",), workers=0):
        model = Narrow(limit=8)
        data = TensorDataset(torch.zeros(64, 6), torch.zeros(64, dtype=torch.int64))
        loader = DataLoader(data, 8, num_workers=workers)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        work = pm.Training(model, nn.CrossEntropyLoss(), optimizer, loader)
        self.batches = PositionedBatches(loader, torch.device("cpu"))
        self.times = StepTimes(HostClock())
        self.step = LoopStep(work, work.parts, self.batches, self.times, torch.device("cpu"))
        self.adjusting = Adjusting(allowed, self.step, self.batches, self.times)
        self.step._taken = [((torch.zeros(8, 6),), True)]

    def steps(self, seconds, number=TRIAL_STEPS, data=0.0):
        for index in range(number):
            step_s = seconds * (1 + 0.001 * (index * 7 % 5))
            self.times.recent.append(step_s)
            self.times._rows.append({"data": data * step_s, "forward": (1 - data) * step_s})
            self.times._totals.append(step_s)
            self.adjusting.after_step(100)

    @property
    def told(self):
        return [(one.before, one.after, one.fate) for one in self.adjusting.made]


def test_smaller_parts_that_are_slower_are_undone_once_memory_suffices():
    bench = Bench()
    bench.steps(0.1)
    assert bench.adjusting.out_of_memory(1) is None
    bench.steps(0.2)
    assert bench.step.micro_batches == 1
    bench.steps(0.1)
    assert bench.told == [(1, 2, "needed"), (2, 1, "kept")]
    first, second = bench.adjusting.made
    assert first.before_s < first.after_s
    assert second.after_s < second.before_s
    assert str(second).startswith("step 100: micro_batches 2 → 1 (steps were slower, and may fit again), 2")


def test_parts_that_memory_needs_are_not_undone_twice():
    bench = Bench()
    bench.steps(0.1)
    bench.adjusting.out_of_memory(1)
    bench.steps(0.2)
    bench.adjusting.out_of_memory(30)  # whole batches again: too large
    assert bench.step.micro_batches == 2
    bench.steps(0.2, number=5 * TRIAL_STEPS)
    assert bench.step.micro_batches == 2
    assert bench.told == [(1, 2, "needed"), (2, 1, "undone")]


def test_parts_that_are_not_slower_stay():
    bench = Bench()
    bench.steps(0.1)
    bench.adjusting.out_of_memory(1)
    bench.steps(0.09, number=3 * TRIAL_STEPS)
    assert bench.step.micro_batches == 2
    assert bench.told == [(1, 2, "needed")]


def test_a_loader_that_steps_wait_for_gets_workers_and_they_are_kept_while_they_pay(monkeypatch):
    monkeypatch.setattr("pyrometer.tuning.loop.adjusting.allowed_cpus", lambda: frozenset({0, 1}))
    bench = Bench(("loader",))
    bench.steps(0.1, data=0.6)
    bench.adjusting.after_epoch(10)
    assert bench.batches.settings == LoaderSettings(num_workers=1, prefetch_factor=2)
    bench.steps(0.06, data=0.3)
    bench.adjusting.after_epoch(20)
    assert bench.batches.settings.num_workers == 2
    bench.steps(0.07, data=0.3)
    bench.adjusting.after_epoch(30)
    assert bench.batches.settings.num_workers == 1, "two were slower"
    bench.steps(0.06, data=0.3)
    bench.adjusting.after_epoch(40)
    assert bench.told == [(0, 1, "kept"), (1, 2, "undone")]


def test_a_loader_that_nobody_waits_for_or_that_may_not_be_changed_stays():
    for bench, waits in ((Bench(("loader",)), 0.05), (Bench(("memory",)), 0.9)):
        bench.steps(0.1, data=waits)
        bench.adjusting.after_epoch(10)
        assert bench.told == []
        assert bench.batches.settings.num_workers == 0


def test_steps_that_changed_meanwhile_prove_nothing_about_a_loader():
    bench = Bench(("loader", "memory"))
    bench.steps(0.1, data=0.6)
    bench.adjusting.after_epoch(10)
    bench.adjusting.out_of_memory(11)
    bench.steps(0.05, data=0.1)
    bench.adjusting.after_epoch(20)
    assert (0, 1, "undone") in bench.told
    assert bench.batches.settings.num_workers == 0


@pytest.mark.slow
def test_an_adjusted_loader_trains_on_the_same_samples():
    class Waiting(TensorDataset):
        def __getitem__(self, index):
            sum(range(20_000))
            return super().__getitem__(index)

    model = nn.Linear(1, 2)
    data = Waiting(torch.arange(64.0).unsqueeze(1), torch.zeros(64, dtype=torch.int64))
    seen = []

    def loss(model, batch):
        seen.append(batch[0].flatten().tolist())
        return nn.functional.cross_entropy(model(batch[0]), batch[1])

    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    work = pm.Training(model, loss, optimizer, DataLoader(data, 4, shuffle=True))
    run = pm.TrainingLoop(work, adjust=("loader",)).run(epochs=4)
    assert run.adjustments
    for epoch in range(4):
        assert sorted(itertools.chain(*seen[16 * epoch : 16 * (epoch + 1)])) == list(range(64))
