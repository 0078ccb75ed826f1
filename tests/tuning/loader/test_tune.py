from __future__ import annotations

import multiprocessing
import time
import warnings
from itertools import islice
from typing import NamedTuple

import numpy as np
import pytest
import torch
from loading_fixtures import Slow
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

from pyrometer.errors import InputError, UserProgramError
from pyrometer.loading.settings import LoaderSettings
from pyrometer.record import from_json, to_json
from pyrometer.tuning.loader.record import LoaderTuning
from pyrometer.tuning.loader.tune import tune_loader

MIB = 2**20


class Hungry(Dataset):
    """Each worker takes 340 MiB for itself: far more than what a worker copies of the process that it is forked from."""

    buffer = None

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        if self.buffer is None:
            self.buffer = np.ones(340 * MIB, dtype=np.uint8)
        time.sleep(0.02)
        return torch.zeros(4)


class Waiting(NamedTuple):
    """A loader that waits for a disk, the state of its generator, and what tuning says of it."""

    loader: DataLoader
    state: torch.Tensor
    tuning: LoaderTuning


@pytest.fixture(scope="module")
def waiting():
    generator = torch.Generator().manual_seed(1)
    sampler = RandomSampler(range(4000), generator=generator)
    loader = DataLoader(Slow(0.01), batch_size=4, sampler=sampler, generator=generator)
    state = generator.get_state()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        return Waiting(loader, state, tune_loader(loader, step_s=0.01, budget_s=10))


@pytest.mark.measuring
@pytest.mark.slow
def test_waiting_for_a_disk_is_hidden_by_more_workers_than_cpus(waiting):
    tuning = waiting.tuning
    assert tuning.best.num_workers >= 3
    assert tuning.gain.outcome == "faster"
    assert tuning.gain.ci_high < 0.5
    assert "faster" in tuning.sentence
    assert f"num_workers={tuning.best.num_workers}" in tuning.use
    assert tuning.step_s >= 0.01
    assert len(tuning.tried) <= 9


@pytest.mark.measuring
@pytest.mark.slow
def test_the_tuned_loader_is_the_users_with_other_settings(waiting):
    loader, state, tuning = waiting
    assert torch.equal(loader.generator.get_state(), state)
    assert (loader.num_workers, loader._iterator) == (0, None)
    tuned = tuning.apply(loader)
    assert tuned.num_workers == tuning.best.num_workers > 0
    assert (tuned.sampler, tuned.generator) == (loader.sampler, loader.generator)
    assert tuned.collate_fn == loader.collate_fn
    numbers = torch.cat([batch[0][:, 0] for batch in islice(tuned, 25)]).tolist()
    assert len(set(numbers)) == 100
    assert numbers != sorted(numbers)


@pytest.mark.measuring
@pytest.mark.slow
def test_for_tiny_samples_workers_are_slower_and_go(make):
    tuning = tune_loader(DataLoader(make.Slow(size=2000), batch_size=4, num_workers=3), budget_s=8)
    assert tuning.best == LoaderSettings()
    assert tuning.gain.ci_high < 0.7


@pytest.mark.measuring
def test_a_loader_that_is_best_already_is_said_to_be(make):
    tuning = tune_loader(DataLoader(make.Slow(size=2000), batch_size=4), max_workers=1, budget_s=2)
    assert tuning.best == tuning.before == LoaderSettings()
    assert tuning.gain is None
    assert "already best" in tuning.sentence
    assert {settings.num_workers for settings in tuning.tried} >= {0, 1}


@pytest.mark.measuring
@pytest.mark.slow
def test_memory_is_kept_to_and_what_is_beyond_is_listed_with_the_reason():
    tuning = tune_loader(Hungry(), batch_size=2, step_s=0.004, max_memory_bytes=1000 * MIB, budget_s=10)
    refused = [settings for settings in tuning.tried if settings.refused]
    assert tuning.best.num_workers == 2
    assert all("1000 MiB are allowed" in settings.refused for settings in refused)
    assert refused[-1].num_workers > 2
    assert all(settings.memory_bytes <= 1000 * MIB for settings in tuning.tried if not settings.refused)


@pytest.mark.slow
@pytest.mark.parametrize(
    "budget_s", [pytest.param(6, id="time", marks=pytest.mark.exhaustive), pytest.param(0.1, id="no time")]
)
def test_a_loader_beyond_the_limit_is_not_kept(budget_s):
    loader = DataLoader(Hungry(), batch_size=2, num_workers=3)
    tuning = tune_loader(loader, step_s=0.004, max_memory_bytes=100 * MIB, budget_s=budget_s)
    assert tuning.best.num_workers == 0  # one worker takes more, too
    assert tuning.tried[0].refused is not None
    assert "is not allowed" in tuning.sentence
    assert any("needs more" in note for note in tuning.notes)


@pytest.mark.exhaustive
def test_short_epochs_are_not_called_best_before_kept_workers_were_tried(make):
    loader = DataLoader(make.Slow(0.0005, size=128), batch_size=16, shuffle=True)
    tuning = tune_loader(loader, max_workers=2, budget_s=4)
    tried = [settings for settings in tuning.tried if settings.persistent_workers]
    assert tried or "already best" not in tuning.sentence
    assert tried or any("no time" in text for text in (tuning.sentence, *tuning.notes))


def test_without_time_it_is_undecided(make):
    tuning = tune_loader(DataLoader(make.Slow(0.01), batch_size=4), max_workers=2, budget_s=0.01)
    assert tuning.best == tuning.before
    assert tuning.sentence.startswith("undecided")


@pytest.mark.measuring
def test_three_samples_are_enough(make):
    tuning = tune_loader(make.Slow(size=3), budget_s=1)
    assert tuning.best.num_workers == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"batch_size": None},
        {"batch_sampler": BatchSampler(range(200), 5, drop_last=False)},
        {"batch_size": 4, "collate_fn": list},
    ],
)
def test_every_way_to_batch_can_be_tuned(make, arguments):
    tuning = tune_loader(make.Slow(size=200), max_workers=1, budget_s=2, **arguments)
    assert [settings.num_workers for settings in tuning.tried[:2]] == [0, 1]


@pytest.mark.measuring
@pytest.mark.slow
@pytest.mark.exhaustive  # as for a dataset of items, above
def test_an_iterable_dataset_that_shares_its_work_gets_workers(make):
    class Slowly(make.Numbers):
        def __iter__(self):
            for number in super().__iter__():
                time.sleep(0.01)
                yield number

    tuning = tune_loader(Slowly(4000), batch_size=4, step_s=0.01, budget_s=20)
    assert tuning.best.num_workers >= 3


@pytest.mark.exhaustive
def test_an_iterable_dataset_that_repeats_itself_gets_one_worker_at_most(make):
    class Slowly(make.Numbers):
        def __iter__(self):
            for number in super().__iter__():
                time.sleep(0.005)
                yield number

    tuning = tune_loader(Slowly(4000, shares=False), batch_size=4, step_s=0.01, budget_s=6)
    assert tuning.best.num_workers <= 1
    assert any(
        settings.num_workers > 1 and "get_worker_info" in settings.refused for settings in tuning.tried
    )


def test_what_cannot_be_pickled_is_tuned_without_workers(make):
    dataset = make.Slow(size=100)
    dataset.transform = lambda x: x
    loader = DataLoader(dataset, batch_size=4)
    # As if spawn were the default, which a loader without workers cannot be told.
    loader._DataLoader__multiprocessing_context = multiprocessing.get_context("spawn")
    tuning = tune_loader(loader, budget_s=2)
    assert tuning.best.num_workers == 0
    assert any(
        settings.refused and "cannot be started by spawn" in settings.refused for settings in tuning.tried
    )


@pytest.mark.measuring
@pytest.mark.slow
def test_the_training_itself_may_take_the_batches(make):
    loader = DataLoader(make.Slow(0.01), batch_size=4)
    work = make.training(loader, 0.02)
    before = [parameter.detach().clone() for parameter in work.parts.model.parameters()]
    state = torch.get_rng_state()
    tuning = tune_loader(loader, work=work, budget_s=10)
    assert tuning.best.num_workers >= 2
    assert tuning.gain.ci_high < 0.8
    assert torch.equal(torch.get_rng_state(), state)
    after = work.parts.model.parameters()
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_a_tuning_is_the_same_after_json(make):
    tuning = tune_loader(make.Slow(size=50), batch_size=4, max_workers=1, budget_s=1)
    assert from_json(LoaderTuning, to_json(tuning)) == tuning


def test_interrupting_ends_all_workers(make):
    loader = DataLoader(make.Slow(), batch_size=4, num_workers=2)
    work = make.training(loader)
    alive = []

    def interrupted(output, target):
        alive.append(len(multiprocessing.active_children()))
        if len(alive) == 12:
            raise KeyboardInterrupt
        return output.sum()

    work.parts = work.parts._replace(loss=interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune_loader(loader, work=work, budget_s=8)
    assert alive[-1] == 2
    assert multiprocessing.active_children() == []


def test_what_the_dataset_raises_is_the_users_error():
    class Broken(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            raise OSError("no such disk")

    with pytest.raises(UserProgramError, match="OSError: no such disk"):
        tune_loader(Broken(), budget_s=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget_s": 0}, "budget_s"),
        ({"budget_s": "4"}, "budget_s"),
        ({"max_workers": 1.5}, "max_workers"),
        ({"margin": 2}, "margin"),
        ({"max_workers": -1}, "max_workers"),
        ({"max_memory_bytes": 0}, "max_memory_bytes"),
        ({"step_s": -1}, "step_s"),
        ({"batch_size": "four"}, "DataLoader of this dataset"),
        ({"no_such_argument": 1}, "DataLoader of this dataset"),
    ],
)
def test_figures_that_make_no_sense_are_refused(make, arguments, message):
    with pytest.raises(InputError, match=message):
        tune_loader(make.Slow(size=4), **arguments)


def test_what_is_no_loader_is_refused(make):
    with pytest.raises(InputError, match="must be a DataLoader"):
        tune_loader(3)
    with pytest.raises(InputError, match="arguments go with a dataset"):
        tune_loader(DataLoader(make.Slow()), batch_size=2)
    with pytest.raises(InputError, match="it has no batches"):
        tune_loader(DataLoader([]), budget_s=1)
    with pytest.raises(InputError, match="give one of them"):
        tune_loader(make.Slow(), step_s=1, work=make.training(DataLoader(make.Slow())))
