"""Nothing is read before it was copied, and no memory is used again before it was read, whatever the device does first."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.tuning.prefetch.ahead import CopiesAhead
from pyrometer.tuning.prefetch.prefetcher import DevicePrefetcher

ORDERS = {
    "copies first": ["copies"] * 20,
    "computation first": ["main"] * 20,
    "in turn": ["copies", "main"] * 3,
    "nothing before the end": [],
}


def loader(num_batches):
    """Batches that nobody else holds, so that their memory goes as soon as the prefetcher lets go of it."""
    for number in range(num_batches):
        yield {"x": torch.full((4,), float(number)), "y": [torch.full((2,), number + 100)]}


def consume(streams, order, *, num_batches=8, depth=2, pin=False, kept=0):
    """Read every batch by a kernel, then drop it (or keep the last few); let the device go on in the given order."""
    seen, held = [], []
    for batch in DevicePrefetcher(loader(num_batches), "cpu", depth=depth, pin=pin, streams=streams):
        streams.read(batch["x"], seen)
        streams.read(batch["y"][0], seen)
        held = [*held, batch][-kept:] if kept else []
        del batch
        for stream in order:
            streams.run(stream)
    streams.drain()
    return [values.tolist() for values in seen]


def expected(num_batches):
    return [values for number in range(num_batches) for values in ([float(number)] * 4, [number + 100] * 2)]


@pytest.mark.parametrize("order", ORDERS.values(), ids=list(ORDERS))
@pytest.mark.parametrize("pin", [False, True])
def test_every_batch_is_read_as_the_loader_gave_it(simulated, order, pin):
    streams = simulated()
    assert consume(streams, order, pin=pin) == expected(8)
    assert streams.lost_sources == 0


@given(
    order=st.lists(st.sampled_from(["copies", "main"]), max_size=12),
    depth=st.integers(1, 4),
    kept=st.integers(0, 3),
)
def test_so_it_is_in_any_order_at_any_depth(simulated, order, depth, kept):
    streams = simulated()
    assert consume(streams, order, depth=depth, kept=kept) == expected(8)
    assert streams.lost_sources == 0


def test_memory_is_used_again_so_that_the_simulation_proves_something(simulated):
    streams = simulated()
    consume(streams, ["copies", "copies", "copies", "main", "main", "main", "main"])
    assert streams.num_reused > 0


def test_without_record_stream_the_simulation_finds_memory_used_again_too_early(simulated):
    class Forgetful(simulated):
        def hold(self, tensor):
            pass

    assert consume(Forgetful(), ORDERS["copies first"]) != expected(8)


def test_with_record_stream_of_one_tensor_only_it_finds_the_other(simulated):
    class HalfForgetful(simulated):
        def hold(self, tensor):
            if tensor.shape == (4,):
                super().hold(tensor)

    seen = consume(HalfForgetful(), ORDERS["copies first"])
    assert seen[::2] == expected(8)[::2]
    assert seen[1::2] != expected(8)[1::2]


def test_without_a_wait_it_finds_tensors_read_before_they_were_copied(simulated):
    class Impatient(simulated):
        def wait(self, event):
            pass

    assert consume(Impatient(), ORDERS["computation first"]) != expected(8)


def test_with_an_event_from_before_the_copies_it_finds_them_too(simulated):
    class Hasty(simulated):
        def record(self):
            event = super().record()
            event.done = True
            return event

    assert consume(Hasty(), ORDERS["computation first"]) != expected(8)


def test_with_sources_let_go_too_early_it_finds_copies_of_what_is_gone(simulated, monkeypatch):
    monkeypatch.setattr(CopiesAhead, "_release_sources", lambda self: self._departed.clear())
    streams = simulated()
    consume(streams, ORDERS["nothing before the end"])
    assert streams.lost_sources > 0


def test_the_stream_that_waits_is_the_one_current_at_next(simulated):
    streams = simulated()
    seen = []
    batches = iter(DevicePrefetcher(loader(3), "cpu", streams=streams))
    first = next(batches)
    streams.current = "other"
    second = next(batches)
    streams.read(second["x"], seen)
    assert not streams.run("main") or not seen
    for _ in range(9):
        streams.run("other")
    assert not seen, "it would have been read before it was copied"
    streams.drain()
    assert seen[0].tolist() == [1.0] * 4
    assert {user for block in streams.blocks.values() for user in block.users} == {"main", "other"}
    del first


def test_the_consumer_may_write_to_its_batch(simulated):
    streams = simulated()
    seen = []
    for batch in DevicePrefetcher(loader(6), "cpu", streams=streams):
        streams.read(batch["x"], seen)
        streams.write(batch["x"], -1.0)
        streams.read(batch["x"], seen)
        del batch
        for _ in range(4):
            streams.run("copies")
    streams.drain()
    assert [values[0].item() for values in seen] == [value for number in range(6) for value in (number, -1)]


def test_sources_are_let_go_once_they_were_copied(simulated):
    streams = simulated()
    sizes = []
    iterator = iter(DevicePrefetcher(loader(50), "cpu", streams=streams))
    for _ in iterator:
        while streams.run("copies"):
            pass
        sizes.append(len(iterator._ahead._departed))
    assert max(sizes) <= 2


def test_closing_waits_for_copies_that_read_from_the_host(simulated):
    streams = simulated()
    prefetcher = DevicePrefetcher(loader(9), "cpu", depth=4, streams=streams)
    iterator = iter(prefetcher)
    next(iterator)
    next(iterator)
    assert streams.queues["copies"]
    prefetcher.close()
    assert not streams.queues["copies"]
    assert streams.lost_sources == 0


def test_an_abandoned_loop_waits_for_them_too(simulated):
    streams = simulated()
    for batch in DevicePrefetcher(loader(9), "cpu", depth=4, pin=True, streams=streams):
        del batch
        break
    assert not streams.queues["copies"]
    assert streams.lost_sources == 0
    streams.drain()


def test_a_copy_that_fails_halfway_leaves_no_copy_without_its_source(simulated):
    class Small(simulated):
        def copy(self, tensor):
            if tensor.dtype == torch.int64:
                raise torch.OutOfMemoryError("no room")
            return super().copy(tensor)

    streams = Small()
    iterator = iter(DevicePrefetcher(loader(2), "cpu", streams=streams))
    for _ in range(2):
        with pytest.raises(torch.OutOfMemoryError, match="no room"):
            next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)
    streams.drain()
    assert streams.lost_sources == 0
