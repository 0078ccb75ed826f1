"""What profiling finds out about samples and batches, within its budget and without changing the dataset."""

from __future__ import annotations

import itertools
import random
import time

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
)

from pyrometer.errors import InputError, UserProgramError
from pyrometer.loading.profiling.fetching import Clocks, Fetched
from pyrometer.loading.profiling.profile import profile_samples
from pyrometer.loading.profiling.record import SampleProfile
from pyrometer.loading.profiling.times import sample_times
from pyrometer.record import from_json, to_json


class Images(Dataset):
    """Random images by index."""

    def __init__(self, length=40):
        self.length = length
        self.calls = []

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if not 0 <= index < self.length:
            raise IndexError(index)
        return torch.rand(3, 8, 8), index % 10


class Sleeping(Images):
    def __init__(self, seconds, length=40):
        super().__init__(length)
        self.seconds = seconds

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.zeros(3)


class Stream(IterableDataset):
    """Endless."""

    def __iter__(self):
        for number in itertools.count():
            yield torch.full((4,), float(number))


def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_a_loader_is_profiled_and_the_record_survives_json():
    loader = DataLoader(Images(), batch_size=8, shuffle=True, num_workers=2)
    profile = profile_samples(loader, budget_s=1.0)
    assert (profile.dataset, profile.kind, profile.num_samples, profile.batch_size) == (
        "Images",
        "map",
        40,
        8,
    )
    assert profile.num_workers == 2
    assert profile.samples.num_samples == 40
    assert profile.samples.median_s <= profile.samples.p90_s <= profile.samples.p99_s <= profile.samples.max_s
    assert len(profile.samples.slowest) == 5
    assert profile.batches.num_batches == 5
    assert profile.batches.batch_size == 8
    assert profile.batches.collate == "default_collate"
    assert profile.contents.num_tensors == 2
    assert profile.contents.num_bytes == 8 * (3 * 8 * 8 * 4 + 8)
    assert profile.contents.sample_bytes == 3 * 8 * 8 * 4 + 8
    assert from_json(SampleProfile, to_json(profile)) == profile


@pytest.mark.measuring
def test_what_a_sample_waits_for_is_told_by_its_cpu_time():
    assert profile_samples(Sleeping(0.005), budget_s=0.2).samples.bound == "io"

    class Busy(Images):
        def __getitem__(self, index):
            busy(0.003)
            return torch.zeros(2)

    wall, cpu = itertools.count(0, 1.0), itertools.count(0, 0.95)
    clocks = Clocks(wall=lambda: next(wall), cpu=lambda: next(cpu))
    assert profile_samples(Busy(4), budget_s=1000.0, clocks=clocks).samples.cpu_share > 0.8


def test_the_slowest_samples_are_named_and_a_trend_with_the_index_is_seen():
    fetched = [Fetched(index, None, 0.001 * (1 + index), 0.0) for index in range(50)]
    random.Random(0).shuffle(fetched)
    times = sample_times(fetched, by_index=True)
    assert [slow.index for slow in times.slowest] == [49, 48, 47, 46, 45]
    assert times.trend.rank_correlation == pytest.approx(1.0)
    assert times.trend.last_over_first > 5
    even = [Fetched(index, None, 0.001 + 1e-6 * (index * 37 % 50), 0.0) for index in range(50)]
    assert abs(sample_times(even, by_index=True).trend.rank_correlation) < 0.3
    assert sample_times(fetched[:5], by_index=True).trend is None


@pytest.mark.measuring
def test_the_line_that_takes_the_time_is_named():
    class Reading(Images):
        def __getitem__(self, index):
            time.sleep(0.004)  # the slow line
            return torch.zeros(2)

    def collate(samples):
        time.sleep(0.02)  # the other slow line
        return torch.stack(samples)

    times = profile_samples(DataLoader(Reading(), batch_size=4, collate_fn=collate), budget_s=1.0).batches
    by_source = {line.source: line for line in times.lines}
    assert by_source["time.sleep(0.004)  # the slow line"].stage == "dataset"
    assert by_source["time.sleep(0.02)  # the other slow line"].stage == "collate"
    assert by_source["time.sleep(0.02)  # the other slow line"].function == "collate"
    assert "test_profile.py:" in times.lines[0].place
    assert sum(line.share for line in times.lines) > 0.8
    assert times.line_sampling_share < 0.2


@pytest.mark.measuring
def test_very_slow_samples_do_not_overdraw_the_budget_by_more_than_one():
    dataset = Sleeping(0.25)
    profile = profile_samples(DataLoader(dataset, batch_size=32), budget_s=0.6)
    assert profile.elapsed_s < 8.0, "a batch of 32 alone would take as long"
    assert profile.samples.num_samples >= 1
    assert profile.batches.batch_size < 32
    assert any("samples instead of 32" in note for note in profile.notes)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_tiny_datasets_are_profiled(length):
    profile = profile_samples(DataLoader(Images(length), batch_size=8), budget_s=0.2)
    assert profile.samples.num_samples == length
    assert profile.batches.batch_size == length
    assert profile.samples.trend is None


def test_an_iterable_dataset_gives_its_first_samples_from_a_fresh_iterator():
    stream = Stream()
    mine = iter(stream)
    next(mine)
    profile = profile_samples(DataLoader(stream, batch_size=4), samples=20, budget_s=0.2)
    assert profile.kind == "iterable"
    assert profile.num_samples is None
    assert profile.samples.num_samples == 19
    assert profile.samples.start_s is not None
    assert profile.contents.num_bytes == 4 * 16
    assert profile.repeated.same_share == 1.0
    assert next(mine)[0] == 1


def test_an_iterable_dataset_that_ends_early_is_profiled_as_far_as_it_goes():
    class Short(IterableDataset):
        def __iter__(self):
            return iter([torch.zeros(2)] * 3)

    profile = profile_samples(DataLoader(Short(), batch_size=8), budget_s=0.2)
    assert profile.samples.num_samples == 2
    assert profile.batches.batch_size == 3


def test_without_automatic_batching_what_the_dataset_gives_is_the_batch():
    profile = profile_samples(DataLoader(Images(), batch_size=None), budget_s=0.2)
    assert profile.batch_size is None
    assert profile.batches.collate == "default_convert"
    assert profile.contents.num_bytes == 3 * 8 * 8 * 4


def test_a_sampler_of_lists_asks_the_dataset_for_lists():
    class Rows(Images):
        def __getitem__(self, indices):
            assert isinstance(indices, list)
            return torch.zeros(len(indices), 2)

    dataset = Rows()
    sampler = BatchSampler(RandomSampler(dataset), batch_size=5, drop_last=False)
    profile = profile_samples(DataLoader(dataset, batch_size=None, sampler=sampler), budget_s=0.2)
    assert profile.contents.num_bytes == 5 * 2 * 4


def test_a_dataset_may_be_asked_by_names():
    class Named:
        def __len__(self):
            return 6

        def __getitem__(self, name):
            return torch.zeros(len(name))

    loader = DataLoader(Named(), batch_size=2, sampler=["aa", "bb", "cc", "dd", "ee", "ff"])
    profile = profile_samples(loader, budget_s=0.2)
    assert profile.samples.num_samples == 6
    assert profile.contents.num_bytes == 2 * 2 * 4


def test_datasets_that_fetch_many_at_once_are_asked_for_many():
    class Many(Images):
        def __getitems__(self, indices):
            self.calls.append(len(indices))
            return [self[index] for index in indices]

    dataset = Many()
    calls = dataset.calls
    seen = []
    dataset.calls = type("Log", (list,), {"append": lambda self, one: seen.append(one)})()
    profile_samples(DataLoader(dataset, batch_size=8), budget_s=0.2)
    assert set(seen) == {8}
    assert calls == []


def test_a_bare_dataset_that_cannot_be_put_together_is_profiled_without_batches():
    class Ragged(Images):
        def __getitem__(self, index):
            return torch.zeros(index + 1)

    profile = profile_samples(Ragged(), budget_s=0.2)
    assert profile.batches is None
    assert profile.contents is None
    assert any("default_collate cannot put samples" in note for note in profile.notes)


def test_the_dataset_its_sampler_and_all_random_state_are_left_as_they_were():
    class Lazy(Images):
        def __init__(self):
            super().__init__()
            self.handle = None
            self.cache = {}
            self.seen = []
            self.rng = np.random.default_rng(3)
            self.generator = torch.Generator().manual_seed(4)
            self.python = random.Random(5)

        def __getitem__(self, index):
            self.handle = object()
            self.cache[index] = torch.zeros(2)
            self.seen.append(index)
            self.new = index
            self.rng.random()
            self.python.random()
            torch.rand(1, generator=self.generator)
            return torch.rand(2), np.random.rand(), random.random()  # noqa: NPY002

    dataset, generator = Lazy(), torch.Generator().manual_seed(7)
    loader = DataLoader(dataset, batch_size=4, shuffle=True, generator=generator)

    def state():
        return (
            torch.get_rng_state().tolist(),
            random.getstate(),
            np.random.get_state()[1].tolist(),  # noqa: NPY002
            generator.get_state().tolist(),
            dataset.rng.bit_generator.state,
            dataset.generator.get_state().tolist(),
            dataset.python.getstate(),
            dict(vars(dataset)),
            dict(dataset.cache),
            list(dataset.seen),
        )

    before = state()
    profile = profile_samples(loader, budget_s=0.2)
    after = state()
    assert after[:7] == before[:7]
    assert after[7].keys() == before[7].keys()
    assert all(after[7][name] is value for name, value in before[7].items())
    assert after[8:] == ({}, [])
    assert any("Lazy.handle" in note and "restored" in note for note in profile.notes)


def test_it_is_restored_after_a_failure_too():
    class Failing(Images):
        handle = None

        def __getitem__(self, index):
            self.handle = object()
            raise OSError("disk gone")

    dataset = Failing()
    before = torch.get_rng_state()
    with pytest.raises(UserProgramError):
        profile_samples(dataset, budget_s=0.2)
    assert "handle" not in vars(dataset)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_broken_sample_is_named_with_its_index():
    class Broken(Images):
        def __getitem__(self, index):
            if index == 13:
                raise ValueError("cannot decode")
            return torch.zeros(2)

    with pytest.raises(UserProgramError, match=r"dataset\[13\] raised ValueError: cannot decode"):
        profile_samples(Broken(), budget_s=0.2)

    class BrokenStream(IterableDataset):
        def __iter__(self):
            yield torch.zeros(2)
            raise ValueError("bad shard")

    with pytest.raises(
        UserProgramError, match="sample 1 of the iterable dataset raised ValueError: bad shard"
    ):
        profile_samples(BrokenStream(), budget_s=0.2)


def test_a_broken_collate_function_is_the_users_failure():
    def collate(samples):
        raise KeyError("label")

    with pytest.raises(UserProgramError, match="collate_fn raised KeyError: 'label'"):
        profile_samples(DataLoader(Images(), batch_size=2, collate_fn=collate), budget_s=0.2)


@pytest.mark.parametrize(
    ("given", "settings", "message"),
    [
        (3, {}, "got int; it must be a DataLoader, or a dataset"),
        ([], {}, "dataset: it is empty"),
        (iter([1, 2]), {}, "an iterator, which profiling would use up"),
        ([1.0], {"samples": 0}, "samples: got 0; legal are whole"),
        ([1.0], {"samples": 1.5}, r"samples: got 1\.5; legal are whole"),
        ([1.0], {"batches": -1}, "batches: got -1; legal are whole"),
        ([1.0], {"batches": "4"}, "batches: got '4'; legal are whole"),
        ([1.0], {"batches": True}, "batches: got True; legal are whole"),
        ([1.0], {"budget_s": 0}, "budget_s: got 0; it must be a number above 0"),
        ([1.0], {"budget_s": None}, "budget_s: got None; it must be a number above 0"),
        ([1.0], {"budget_s": float("nan")}, "budget_s: got nan; it must be a number above 0"),
    ],
)
def test_what_cannot_be_profiled_is_refused(given, settings, message):
    with pytest.raises(InputError, match=message):
        profile_samples(given, **settings)


def test_an_iterable_dataset_without_samples_is_refused():
    class Empty(IterableDataset):
        def __iter__(self):
            return iter(())

    with pytest.raises(InputError, match="gave no sample"):
        profile_samples(Empty())


def test_a_sampler_that_would_be_used_up_is_not_touched():
    dataset = Images(12)
    sampler = iter([[0, 1], [2, 3]])
    profile_samples(DataLoader(dataset, batch_sampler=sampler), budget_s=0.2)
    assert next(sampler) == [0, 1]


def test_subsets_and_their_samplers_are_profiled():
    inner = TensorDataset(torch.arange(30.0).reshape(15, 2))
    subset = Subset(inner, list(range(0, 15, 2)))
    loader = DataLoader(subset, batch_size=3, sampler=SequentialSampler(subset))
    profile = profile_samples(loader, budget_s=0.2)
    assert profile.num_samples == 8
    assert profile.pickled.tensor_bytes == 30 * 4
