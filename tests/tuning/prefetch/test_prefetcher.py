"""What the prefetcher gives, in which order, and what it leaves alone."""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from pyrometer.errors import InputError, UsageError
from pyrometer.tuning.prefetch.prefetcher import DevicePrefetcher

Pair = namedtuple("Pair", "x y")  # noqa: PYI024 - as users write them


@dataclass(frozen=True)
class Frozen:
    x: torch.Tensor
    name: str
    derived: int = field(init=False, default=7)

    def __post_init__(self):
        if self.name == "made":
            raise AssertionError("made anew")
        object.__setattr__(self, "derived", 8)


class Movable:
    """An object that moves itself, onto another device's worth of memory."""

    def __init__(self, x, moves=0):
        self.x = x
        self.moves = moves

    def to(self, device, non_blocking=False):
        return Movable(self.x.clone(), self.moves + 1)


class Quantity:
    """Has a `to` that is about something else."""

    magnitude = 3.0

    def to(self, unit):
        raise AssertionError("not a device")


class Counting:
    """Batches that count how many were asked for."""

    def __init__(self, batches):
        self.batches = batches
        self.fetched = 0
        self.threads = set()

    def __iter__(self):
        for batch in self.batches:
            self.fetched += 1
            self.threads.add(threading.get_ident())
            yield batch


def pin_threads():
    return {thread for thread in threading.enumerate() if thread.name.startswith("pyrometer-pin")}


def tensors(num_batches):
    return [torch.full((3,), float(number)) for number in range(num_batches)]


def values(batches):
    return [int(batch[0]) for batch in batches]


def drained(streams, batches):
    """All batches, after the device has done everything."""
    kept = list(batches)
    streams.drain()
    return kept


def test_on_the_cpu_the_loaders_own_iterator_is_handed_through():
    batches = Counting([(number, object()) for number in range(4)])
    num_threads = threading.active_count()
    given = iter(DevicePrefetcher(batches, "cpu", depth=3, pin=True))
    assert batches.fetched == 0
    for number, batch in enumerate(given):
        assert batch is batches.batches[number]
        assert batches.fetched == number + 1
        assert threading.active_count() == num_threads


def test_on_the_cpu_random_numbers_are_drawn_in_the_same_order():
    def mixed(batches):
        torch.manual_seed(0)
        return [(batch, torch.rand(1).item()) for batch in batches]

    class Drawing:
        def __iter__(self):
            return (torch.rand(1).item() for _ in range(5))

    assert mixed(DevicePrefetcher(Drawing(), "cpu")) == mixed(Drawing())


@pytest.mark.parametrize("pin", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_batches_come_in_order_and_again_in_each_epoch(simulated, pin, depth):
    streams = simulated()
    prefetcher = DevicePrefetcher(tensors(7), "cpu", depth=depth, pin=pin, streams=streams)
    assert len(prefetcher) == 7
    for _ in range(2):
        assert values(drained(streams, prefetcher)) == list(range(7))


def test_as_many_batches_as_asked_for_lie_ahead_and_no_call_fetches_more_than_two(simulated):
    batches = Counting(tensors(20))
    prefetcher = DevicePrefetcher(batches, "cpu", depth=3, streams=simulated())
    fetched = [batches.fetched for _ in prefetcher]
    assert fetched[:6] == [2, 4, 6, 7, 8, 9]
    assert [ahead - given for given, ahead in enumerate(fetched, start=1)][2:-3] == [3] * 15


def test_the_loader_runs_on_the_thread_that_asks_also_when_another_pins(simulated):
    batches = Counting(tensors(5))
    streams = simulated()
    drained(streams, DevicePrefetcher(batches, "cpu", pin=True, streams=streams))
    assert batches.threads == {threading.get_ident()}
    assert len(streams.pinned) == 5


def test_every_form_of_batch_keeps_its_type_and_what_is_no_tensor(simulated):
    streams = simulated()
    shared, marker = torch.arange(4.0), object()
    batch = {
        "tuple": (torch.zeros(2), "text"),
        "pair": Pair(torch.ones(2), None),
        "list": [shared, [shared]],
        "ordered": OrderedDict(b=torch.ones(1), a=torch.zeros(1)),
        "default": defaultdict(list, x=torch.ones(3)),
        "user": UserDict(x=torch.ones(3)),
        "frozen": Frozen(torch.ones(2), "name"),
        "array": np.arange(3),
        "marker": marker,
        "quantity": Quantity(),
        "empty": [],
        "scalar": torch.tensor(3),
        "strided": torch.arange(12).reshape(3, 4).t(),
        "bool": torch.tensor([True, False]),
    }
    object.__setattr__(batch["frozen"], "name", "made")  # a copy that runs __post_init__ would fail
    (given,) = drained(streams, DevicePrefetcher([batch], "cpu", streams=streams))
    assert {key: type(value) for key, value in given.items()} == {
        key: type(value) for key, value in batch.items()
    }
    assert list(given["ordered"]) == ["b", "a"]
    assert given["default"].default_factory is list
    assert given["frozen"].derived == 8
    assert given["list"][0] is given["list"][1][0]
    assert given["array"] is batch["array"]
    assert given["marker"] is marker
    assert given["quantity"] is batch["quantity"]
    for name in ("scalar", "strided", "bool"):
        assert streams.is_here(given[name])
        torch.testing.assert_close(given[name], batch[name])
    assert batch["list"][0] is shared, "the loader's own batch stays as it was"


def test_an_object_that_moves_itself_is_asked_to_once_and_its_tensors_are_recorded(simulated):
    class Seeing(simulated):
        """All tensors that were made in copying lie here."""

        def __init__(self):
            super().__init__()
            self.held = []

        def is_here(self, tensor):
            return tensor.data_ptr() not in {source.data_ptr() for source in sources}

        def hold(self, tensor):
            self.held.append(tensor)

    movable = Movable(torch.arange(3.0))
    sources = [movable.x]
    streams = Seeing()
    (given,) = list(DevicePrefetcher([movable], "cpu", streams=streams))
    assert given.moves == 1
    assert [tensor.data_ptr() for tensor in streams.held] == [given.x.data_ptr()]
    assert movable.moves == 0


def test_what_may_hide_tensors_is_moved_when_it_is_handed_out(simulated):
    class Opaque(Movable):
        def __init__(self, x, moves=0):
            super().__init__(x, moves)
            self.hidden = iter([x])

        def to(self, device, non_blocking=False):
            order.append("moved")
            return Movable(self.x.clone(), self.moves + 1)

    order = []

    def batches():
        for number in range(3):
            order.append(f"fetched {number}")
            yield Opaque(torch.zeros(2))

    for batch in DevicePrefetcher(batches(), "cpu", streams=simulated()):
        assert batch.moves == 1
        order.append("given")
    assert order[:4] == ["fetched 0", "fetched 1", "moved", "given"]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("form", ["coo", "csr", "nested", "packed"])
def test_tensors_without_a_single_block_and_packed_sequences_arrive(simulated, form):
    rows = [torch.ones(3), torch.ones(2)]
    made = {
        "coo": lambda: torch.eye(3).to_sparse(),
        "csr": lambda: torch.eye(3).to_sparse_csr(),
        "nested": lambda: torch.nested.nested_tensor(rows, layout=torch.jagged),
        "packed": lambda: pack_sequence(rows),
    }
    batch = made[form]()
    streams = simulated()
    (given,) = drained(streams, DevicePrefetcher([batch], "cpu", streams=streams))
    assert type(given) is type(batch)
    if form == "nested":
        given, batch = given.values(), batch.values()
    torch.testing.assert_close(getattr(given, "data", given), getattr(batch, "data", batch))


def test_tensors_of_another_device_are_not_copied_ahead(simulated):
    streams = simulated()
    streams.device = torch.device("meta")
    other = torch.ones(4, device="meta")
    streams.is_here = lambda tensor: False
    (given,) = list(DevicePrefetcher([other], "cpu", streams=streams))
    assert given.device.type == "meta"
    assert not any(streams.queues.values())


def test_tensors_on_the_device_pass_through_as_they_are(simulated):
    streams = simulated()
    here = streams.copy.__func__
    with streams.copying():
        there = here(streams, torch.ones(4))
    streams.drain()
    (given,) = list(DevicePrefetcher([(there, "x")], "cpu", streams=streams))
    assert given[0] is there
    assert not streams.queues["main"]


def test_copies_are_ordinary_tensors_in_whatever_mode_they_were_made(simulated):
    streams = simulated()
    iterator = iter(DevicePrefetcher([torch.ones(2, requires_grad=True)] * 3, "cpu", streams=streams))
    with torch.inference_mode():
        first = next(iterator)
    second = next(iterator)
    streams.drain()
    for batch in (first, second):
        assert not batch.is_inference()
        assert batch.requires_grad
        assert batch.is_leaf


@pytest.mark.parametrize("pin", [False, True])
def test_an_exception_of_the_loader_is_raised_in_its_turn_and_nothing_is_lost(simulated, pin):
    class Failing:
        """Fails once, and could go on."""

        def __init__(self):
            self.number = -1

        def __iter__(self):
            return self

        def __next__(self):
            self.number += 1
            if self.number == 2:
                raise ValueError("sample 2 is broken")
            if self.number == 5:
                raise StopIteration
            return torch.full((3,), float(self.number))

    iterator = iter(DevicePrefetcher(Failing(), "cpu", depth=4, pin=pin, streams=simulated()))
    next(iterator)
    next(iterator)
    with pytest.raises(ValueError, match="sample 2 is broken"):
        next(iterator)
    next(iterator)
    next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def test_an_exception_while_pinning_is_raised_in_its_turn(simulated):
    class Full(simulated):
        def pin(self, tensor):
            if tensor[0] == 1:
                raise RuntimeError("no page-locked memory left")
            return super().pin(tensor)

    iterator = iter(DevicePrefetcher(tensors(3), "cpu", pin=True, streams=Full()))
    next(iterator)
    with pytest.raises(RuntimeError, match="page-locked"):
        next(iterator)
    next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def test_an_interruption_comes_at_once_and_loses_no_batch(simulated):
    class Interrupted:
        def __init__(self):
            self.number = -1

        def __iter__(self):
            return self

        def __next__(self):
            self.number += 1
            if self.number == 2:
                raise KeyboardInterrupt
            if self.number > 3:
                raise StopIteration
            return torch.full((3,), float(self.number))

    streams = simulated()
    iterator = iter(DevicePrefetcher(Interrupted(), "cpu", streams=streams))
    kept = [next(iterator)]
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    kept += list(iterator)
    streams.drain()
    assert values(kept) == [0, 1, 3]


def test_an_early_break_ends_the_thread_and_the_next_epoch_is_whole(simulated):
    streams = simulated()
    prefetcher = DevicePrefetcher(tensors(9), "cpu", pin=True, streams=streams)
    before = pin_threads()
    for number, _ in enumerate(prefetcher):
        if number == 2:
            break
    assert pin_threads() <= before
    assert values(drained(streams, prefetcher)) == list(range(9))


def test_closing_ends_what_is_under_way_and_allows_a_new_start(simulated):
    streams = simulated()
    with DevicePrefetcher(tensors(4), "cpu", pin=True, streams=streams) as prefetcher:
        iterator = iter(prefetcher)
        next(iterator)
        prefetcher.close()
        prefetcher.close()
        with pytest.raises(UsageError, match="closed during this iteration"):
            next(iterator)
        assert values(drained(streams, prefetcher)) == [0, 1, 2, 3]


def test_two_iterations_at_once_do_not_disturb_each_other(simulated):
    streams = simulated()
    prefetcher = DevicePrefetcher(tensors(4), "cpu", streams=streams)
    pairs = list(zip(prefetcher, prefetcher, strict=True))
    streams.drain()
    assert [(int(a[0]), int(b[0])) for a, b in pairs] == [(number, number) for number in range(4)]


def test_an_iterator_in_a_cycle_is_closed_by_the_garbage_collector(simulated):
    streams = simulated()
    before = pin_threads()
    iterator = iter(DevicePrefetcher(tensors(9), "cpu", pin=True, streams=streams))
    next(iterator)
    iterator.itself = iterator
    del iterator
    gc.collect()
    assert pin_threads() <= before


def test_a_loader_without_a_length_has_none_and_an_empty_one_ends_at_once(simulated):
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(tensors(3))

    streams = simulated()
    prefetcher = DevicePrefetcher(DataLoader(Stream(), batch_size=None), "cpu", streams=streams)
    with pytest.raises(TypeError, match="has no len"):
        len(prefetcher)
    assert values(drained(streams, prefetcher)) == [0, 1, 2]
    assert list(DevicePrefetcher([], "cpu", streams=simulated())) == []


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_data_loader_gives_what_it_gives_without(simulated, num_workers):
    data = TensorDataset(torch.arange(20.0), torch.arange(20))
    loader = DataLoader(data, batch_size=4, num_workers=num_workers)
    streams = simulated()
    prefetcher = DevicePrefetcher(loader, "cpu", streams=streams)
    assert len(prefetcher) == 5
    for given, plain in zip(drained(streams, prefetcher), loader, strict=True):
        torch.testing.assert_close(given, plain)


@pytest.mark.parametrize(
    ("batches", "settings", "message"),
    [
        (3, {}, "batches: got int; it must be iterable"),
        ([], {"depth": 0}, "depth: got 0; legal are whole numbers from 1 on"),
        ([], {"device": "cuda"}, "device cuda: cannot be used here"),
        ([], {"device": "toaster"}, "device toaster: cannot be used here"),
    ],
)
def test_what_cannot_be_used_is_refused(batches, settings, message):
    if settings.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(InputError, match=message):
        DevicePrefetcher(batches, **{"device": "cpu", **settings})
