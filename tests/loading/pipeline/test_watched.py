from __future__ import annotations

import contextlib
import multiprocessing
import random
import statistics
import time

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler, get_worker_info

from pyrometer.errors import InputError, UserProgramError
from pyrometer.loading.failure import WorkersRefusedError
from pyrometer.loading.loader import settings_of, with_settings
from pyrometer.loading.private import fetching, loader_queue
from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.watched import WatchedBatches
from pyrometer.workload.batches import BatchStream


class Drawing(Dataset):
    """Says all that a worker can know, and draws from every random generator."""

    def __init__(self):
        self.prepared = 0

    def __len__(self):
        return 12

    def __getitem__(self, index):
        info = get_worker_info()
        same = info is None or info.dataset is self
        worker = -1 if info is None else info.id
        legacy = float(np.random.random())  # noqa: NPY002 - the state that user code draws from
        draws = [random.random(), legacy, float(torch.rand(()))]
        return torch.tensor([index, worker, float(same), self.prepared, *draws], dtype=torch.float64)


def prepare(worker):
    get_worker_info().dataset.prepared = 10 + worker


class ManyAtOnce(Dataset):
    def __len__(self):
        return 8

    def __getitems__(self, indices):
        return [torch.tensor(index) for index in indices]

    def __getitem__(self, index):
        raise AssertionError


class Failing(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            raise KeyError("five.npy")
        return torch.tensor(index)


def doubled(samples):
    return torch.stack(samples) * 2


def plain(loader):
    torch.manual_seed(1)
    stream = BatchStream(loader)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - as above
    with contextlib.closing(stream):
        return [stream.next() for _ in range(len(loader))]


def watched(loader):
    torch.manual_seed(1)
    own = WatchedBatches(loader)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - as above
    with contextlib.closing(own):
        return list(own), own


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "arguments",
    [
        {"batch_size": 3},
        {"batch_size": 3, "shuffle": True, "generator": "own"},
        {"batch_size": 3, "shuffle": True},
        {"batch_size": None},
        {"batch_sampler": BatchSampler(SequentialSampler(range(12)), 5, drop_last=True)},
        {"batch_size": 2, "collate_fn": doubled},
    ],
)
def test_watching_changes_no_sample_no_order_and_no_random_number(workers, arguments):
    if "generator" in arguments:
        arguments = {**arguments, "generator": torch.Generator().manual_seed(3)}
    loader = DataLoader(
        Drawing(), num_workers=workers, worker_init_fn=prepare if workers else None, **arguments
    )
    expected = plain(loader)
    batches, own = watched(loader)
    assert len(batches) == len(expected)
    assert all(torch.equal(one, other) for one, other in zip(batches, expected, strict=True))
    assert own.shared_times.num_made == len(batches)
    assert all(cost.total_s > 0 for cost in own.costs())


def test_the_dataset_is_the_very_one_that_workers_are_told_of():
    batches, _ = watched(DataLoader(Drawing(), batch_size=12, num_workers=1, worker_init_fn=prepare))
    index, worker, same, prepared = batches[0][:, :4].T
    assert index.tolist() == list(range(12))
    assert set(worker.tolist()) == {0.0}
    assert set(same.tolist()) == {1.0}
    assert set(prepared.tolist()) == {10.0}


def test_a_dataset_that_is_asked_for_many_at_once_still_is():
    batches, own = watched(DataLoader(ManyAtOnce(), batch_size=4, num_workers=1))
    assert torch.cat(batches).tolist() == list(range(8))
    assert len(own.costs()) == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterable_dataset_shares_its_work_as_before(make, workers):
    batches, own = watched(DataLoader(make.Numbers(16), batch_size=4, num_workers=workers))
    assert sorted(torch.cat(batches)[:, 0].tolist()) == list(range(16))
    assert own.shared_times.num_made == 4


@pytest.mark.measuring
def test_time_asleep_is_storage_and_time_at_work_is_not(make, tmp_path):
    with contextlib.closing(WatchedBatches(DataLoader(make.Slow(0.01, 40), batch_size=4))) as own:
        list(own)
    assert statistics.median(cost.storage_s / cost.dataset_s for cost in own.costs()) > 0.8
    with contextlib.closing(WatchedBatches(DataLoader(make.Compressed(tmp_path), batch_size=16))) as own:
        list(own)
    busy, dataset = sum(c.busy_s for c in own.costs()), sum(c.dataset_s for c in own.costs())
    queued = sum(c.queued_s for c in own.costs())
    assert busy + queued > 0.5 * dataset
    assert sum(cost.read_bytes for cost in own.costs()) > 64 * 1000


@pytest.mark.parametrize("persistent", [False, True])
def test_epochs_follow_each_other_and_their_first_batches_are_known(make, persistent):
    loader = DataLoader(make.Slow(size=8), batch_size=2, num_workers=2, persistent_workers=persistent)
    with contextlib.closing(WatchedBatches(loader)) as own:
        for _ in range(3):
            assert torch.cat([batch[0][:, 0] for batch in own]).tolist() == list(range(8))
    assert own.num_epochs == 3
    assert [pull.first for pull in own.pulls] == [True, False, False, False] * 3
    assert own.ready == 0


def test_the_users_loader_and_its_running_workers_are_left_alone(make):
    loader = DataLoader(make.Slow(size=12), batch_size=2, num_workers=1, persistent_workers=True)
    before = dict(vars(loader))
    users = iter(loader)
    next(users)
    with contextlib.closing(WatchedBatches(loader)) as own:
        next(own)
        next(own)
    assert [batch[0][0, 0].item() for batch in users] == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert loader._iterator is users
    loader._iterator = None
    assert {name: vars(loader)[name] for name in before} == before
    users._shutdown_workers()


def test_the_queue_is_counted_alike_by_torch_and_by_the_workers(make):
    loader = DataLoader(make.Slow(size=64), batch_size=2, num_workers=2, prefetch_factor=3)
    with contextlib.closing(WatchedBatches(loader)) as own:
        next(own)
        deadline_s = time.perf_counter() + 20
        while own.ready < 6 and time.perf_counter() < deadline_s:
            time.sleep(0.01)
        assert own.ready == 6
        assert loader_queue.ready_batches(own._iterator) == 6
        assert len(loader_queue.worker_pids(own._iterator)) == 2
        assert sorted(own.shared_times.pids) == sorted(loader_queue.worker_pids(own._iterator))
        assert own.worker_bytes > 2**20


def test_torch_has_all_that_is_read_of_it():
    assert fetching.missing() == []


def test_a_torch_without_the_place_of_fetchers_is_said_to_be_one(monkeypatch):
    monkeypatch.delattr(torch.utils.data, "_DatasetKind")
    assert "cannot be timed" in fetching.missing()[0]


def test_a_torch_with_another_iterator_is_said_to_be_one(monkeypatch):
    from torch.utils.data import dataloader

    monkeypatch.delattr(dataloader, "_MultiProcessingDataLoaderIter")
    assert loader_queue.ready_batches(iter([])) is None


@pytest.mark.parametrize("workers", [0, 2])
def test_what_the_dataset_raises_is_told_in_one_line(workers):
    loader = DataLoader(Failing(), batch_size=2, num_workers=workers)
    with (
        contextlib.closing(WatchedBatches(loader)) as own,
        pytest.raises(
            UserProgramError, match=r"^the loader raised KeyError: 'five.npy' \(.*test_watched.py:\d+"
        ),
    ):
        list(own)


def test_a_dataset_that_cannot_be_pickled_is_refused_with_what_to_do():
    dataset = Drawing()
    dataset.transform = lambda x: x
    loader = DataLoader(dataset, num_workers=1, multiprocessing_context="spawn")
    with (
        contextlib.closing(WatchedBatches(loader)) as own,
        pytest.raises(
            WorkersRefusedError, match=r"cannot be started by spawn.*multiprocessing_context='fork'"
        ),
    ):
        next(own)


def test_workers_end_when_the_loop_is_left_by_an_exception(make):
    loader = DataLoader(make.Slow(0.005), batch_size=4, num_workers=3)

    def interrupted():
        with contextlib.closing(WatchedBatches(loader)) as own:
            for _ in own:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert multiprocessing.active_children() == []


def test_a_worker_that_hangs_is_ended(make, monkeypatch):
    monkeypatch.setattr("pyrometer.loading.watched.PATIENCE_S", 0.2)
    monkeypatch.setattr("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.2)
    loader = DataLoader(make.Slow(60.0), batch_size=1, num_workers=1)
    own = WatchedBatches(loader)
    iter(own)
    own.close()
    assert multiprocessing.active_children() == []


@pytest.mark.exhaustive
def test_workers_that_are_spawned_are_timed_too():
    dataset = torch.utils.data.TensorDataset(torch.arange(32.0))
    loader = DataLoader(dataset, batch_size=4, num_workers=1, multiprocessing_context="spawn")
    batches, own = watched(loader)
    assert torch.cat([batch[0] for batch in batches]).tolist() == list(range(32))
    assert len(own.costs()) == 8


def test_what_a_dataset_keeps_on_first_use_is_not_left_behind_when_settings_are_tried(make):
    class Caching(make.Slow):
        cache = None

        def __getitem__(self, index):
            self.cache = self.cache or [index]
            return super().__getitem__(index)

    inner = Caching(size=4)
    loader = DataLoader(torch.utils.data.Subset(inner, [0, 1]))
    with contextlib.closing(WatchedBatches(loader, LoaderSettings())) as own:
        assert len(list(own)) == 2
    assert inner.cache is None


def test_batches_may_be_passed_over_once(make):
    with contextlib.closing(WatchedBatches(DataLoader(make.Slow(size=6)), skip_batches=4)) as own:
        assert [batch[0][0, 0].item() for batch in own] == [4.0, 5.0]
        assert len(list(own)) == 6


def test_settings_change_nothing_but_themselves(make):
    loader = DataLoader(
        make.Slow(), batch_size=4, shuffle=True, generator=torch.Generator(), timeout=5, num_workers=1
    )
    other = with_settings(loader, LoaderSettings(num_workers=3, prefetch_factor=4, persistent_workers=True))
    assert settings_of(other) == LoaderSettings(num_workers=3, prefetch_factor=4, persistent_workers=True)
    assert (other.sampler, other.batch_sampler, other.generator) == (
        loader.sampler,
        loader.batch_sampler,
        loader.generator,
    )
    assert other.dataset is loader.dataset
    assert settings_of(loader).num_workers == 1
    assert with_settings(loader, LoaderSettings()).timeout == 0


def test_without_workers_there_is_no_way_to_start_them(make):
    loader = DataLoader(make.Slow(size=4), num_workers=1, multiprocessing_context="fork", timeout=5)
    other = with_settings(loader, LoaderSettings())
    assert other.multiprocessing_context is None
    assert loader.multiprocessing_context is not None
    assert len(list(other)) == 4


def test_a_subclass_stays_one_with_its_own_attributes(make):
    class Mine(DataLoader):
        def __init__(self, data):
            super().__init__(data, batch_size=2)
            self.mine = "kept"

    other = with_settings(Mine(make.Slow(size=4)), LoaderSettings(num_workers=1, prefetch_factor=2))
    assert type(other) is Mine
    assert other.mine == "kept"
    with contextlib.closing(WatchedBatches(other)) as own:
        assert len(list(own)) == 2


def test_a_loader_that_yields_in_its_own_way_is_ended_too(make):
    class Generating(DataLoader):
        def __iter__(self):
            yield from super().__iter__()

    with contextlib.closing(WatchedBatches(Generating(make.Slow(), num_workers=2))) as own:
        next(own)
        assert own.ready is not None


@pytest.mark.parametrize("settings", [{"num_workers": -1}, {"num_workers": 1, "prefetch_factor": 0}])
def test_settings_that_torch_refuses_are_refused(settings):
    with pytest.raises(InputError, match="legal are"):
        LoaderSettings(**settings)
