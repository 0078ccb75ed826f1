"""Allocations found in a history are those that a slow, plain replay finds, forwards and backwards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings
from pyrometer.memory.snapshots.allocator.sizes import round_sizes
from pyrometer.memory.snapshots.build import report_snapshot
from pyrometer.memory.snapshots.layout import layout_at_end, layouts_after, reserved_over_time
from pyrometer.memory.snapshots.lifetimes import find_lifetimes

MIB = 1 << 20
SETTINGS = ("", "expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:4")

programs = st.lists(
    st.tuples(
        st.integers(0, 25),
        st.sampled_from([1, 700, MIB, 3 * MIB + 1000, 11 * MIB, 40 * MIB]),
        st.integers(0, 1),
        st.sampled_from(["free", "free", "pending"]),
    ),
    max_size=100,
)


def run(recorder, program):
    """A random program; returns the bytes in use after each event, by the allocator's own books."""
    pending = []
    for key, size, stream, how in program:
        name = str(key)
        if key == 25:
            recorder.empty_cache()
        elif name not in recorder.live:
            recorder.alloc(name, size, stream=stream)
        elif how == "free":
            recorder.free(name)
        else:
            block = recorder.live.pop(name)
            recorder.allocator.request_free(block)
            pending.append(block)
        if len(pending) > 2:
            recorder.allocator.complete_free(pending.pop(0))
    return pending


def forwards(events, start):
    """Addresses in use after each event, from the beginning."""
    live, found = dict(start), []
    for event in events:
        if event["action"] == "alloc":
            live[event["addr"]] = event["size"]
        elif event["action"] == "free_requested":
            live.pop(event["addr"])
        found.append(dict(live))
    return found


def backwards(events, end):
    """The same, from the end."""
    live, found = dict(end), []
    for event in reversed(events):
        found.append(dict(live))
        if event["action"] == "alloc":
            live.pop(event["addr"])
        elif event["action"] == "free_requested":
            live[event["addr"]] = event["size"]
    return found[::-1], live


@given(program=programs, text=st.sampled_from(SETTINGS), share=st.sampled_from([1.0, 0.6, 0.2]))
def test_replay_is_that_of_a_slow_oracle_both_ways(files, program, text, share):
    recorder = files.recorder(text)
    run(recorder, program)
    keep = max(1, int(len(recorder.events) * share))
    raw = recorder.raw(keep_last=keep)
    events = raw["device_traces"][0]
    end = {block.address: block.requested for block in recorder.live.values()}
    truth, start = backwards(events, end)
    assert forwards(events, start) == truth
    snapshot = files.read(raw)
    if not snapshot.devices:
        return
    (device,) = snapshot.devices
    lifetimes = find_lifetimes(device, recorder.settings)
    assert not lifetimes.notes
    for i, live in enumerate(truth):
        there = lifetimes.in_use_after(i)
        ours = dict(zip(lifetimes.address[there].tolist(), lifetimes.requested[there].tolist(), strict=True))
        assert ours == live
    if share == 1.0 and truth:
        rounded = lifetimes.sizes_over_time(lifetimes.size)
        assert rounded[-1] == recorder.allocator.allocated_bytes
        assert reserved_over_time(device)[-1] == recorder.allocator.reserved_bytes
        assert reserved_over_time(device).max() == recorder.allocator.peak_reserved_bytes
        assert reserved_over_time(device)[0] == 0


@given(program=programs, text=st.sampled_from(SETTINGS), share=st.sampled_from([1.0, 0.3]))
def test_every_byte_held_is_accounted_for_at_every_instant(files, program, text, share):
    recorder = files.recorder(text)
    run(recorder, program)
    snapshot = files.read(recorder.raw(keep_last=max(1, int(len(recorder.events) * share))))
    if not snapshot.devices:
        return
    (device,) = snapshot.devices
    lifetimes = find_lifetimes(device, recorder.settings)
    instants = list(range(-1, len(device.events)))
    reserved = reserved_over_time(device)
    for event, layout in layouts_after(device, lifetimes, recorder.settings, instants).items():
        assert layout.reserved_bytes == reserved[event + 1]
        assert layout.reserved_bytes == layout.allocated_bytes + layout.pending_bytes + layout.free_bytes
        assert 0 <= layout.cached_whole_bytes <= layout.free_bytes
        assert layout.outside_bytes == 0
    last, told = layout, layout_at_end(device)
    last = layouts_after(device, lifetimes, recorder.settings, [len(device.events) - 1])[
        len(device.events) - 1
    ]
    assert (last.allocated_bytes, last.pending_bytes, last.free_bytes, last.cached_whole_bytes) == (
        told.allocated_bytes,
        told.pending_bytes,
        told.free_bytes,
        told.cached_whole_bytes,
    )
    assert sorted(last.gaps.size.tolist()) == sorted(told.gaps.size.tolist())
    report = report_snapshot(snapshot)
    assert (
        sum(report.ledger_bytes.values()) == report.peak_bytes == sum(held.bytes for held in report.at_peak)
    )


def test_what_was_pending_before_the_history_began_was_not_in_use(files):
    recorder = files.recorder()
    for name in "abc":
        recorder.alloc(name, 4 * MIB)
    blocks = [recorder.live[name] for name in "ab"]
    recorder.free("a", "b", pending=True)
    recorder.live.pop("a")
    recorder.live.pop("b")
    start = len(recorder.events)
    recorder.alloc("d", 4 * MIB)
    recorder.free("c", pending=True)
    recorder.live.pop("c")
    recorder.allocator.complete_free(blocks[0])
    report = files.report(recorder.raw(keep_last=len(recorder.events) - start))
    assert report.peak_bytes == 8 * MIB


def test_an_address_used_again_is_another_allocation(files):
    recorder = files.recorder()
    for i in range(5):
        recorder.alloc("a", 4 * MIB, ["user", "other"][i % 2])
        recorder.free("a")
    (device,) = files.read(recorder.raw()).devices
    lifetimes = find_lifetimes(device, AllocatorSettings())
    assert len(set(lifetimes.address.tolist())) == 1
    assert len(lifetimes) == 5


def test_a_history_without_completed_frees_is_understood(files):
    recorder = files.recorder()
    for i in range(3):
        recorder.alloc(f"a{i}", 4 * MIB)
    recorder.free("a0", "a1")
    raw = recorder.raw()
    raw["device_traces"][0] = [
        event for event in raw["device_traces"][0] if event["action"] != "free_completed"
    ]
    report = files.report(raw)
    assert report.peak_bytes == 12 * MIB
    assert [held.bytes for held in report.at_end] == [4 * MIB]


def test_missing_frees_end_where_the_address_is_made_again(files):
    recorder = files.recorder()
    recorder.alloc("a", 4 * MIB)
    recorder.free("a")
    recorder.alloc("b", 4 * MIB)
    raw = recorder.raw()
    raw["device_traces"][0] = [
        event for event in raw["device_traces"][0] if not event["action"].startswith("free")
    ]
    report = files.report(raw)
    assert report.peak_bytes == 4 * MIB
    assert any("1 free" in note for note in report.devices[0].notes)


def test_a_history_that_was_stopped_before_the_dump_says_so(files):
    recorder = files.recorder()
    recorder.alloc("a", 4 * MIB)
    recorder.alloc("b", 4 * MIB)
    events = list(recorder.events)
    recorder.free("a")
    raw = recorder.raw()
    raw["device_traces"][0] = events
    report = files.report(raw)
    assert any("stopped before" in note for note in report.devices[0].notes)


@pytest.mark.parametrize("text", ["", "roundup_power2_divisions:8"])
def test_many_sizes_are_rounded_as_one_is(text):
    from pyrometer.memory.snapshots.allocator.settings import check_settings
    from pyrometer.memory.snapshots.allocator.sizes import round_size

    chosen = check_settings(text).settings
    sizes = np.random.default_rng(0).integers(0, 1 << 34, 500)
    assert round_sizes(sizes, chosen).tolist() == [round_size(int(size), chosen) for size in sizes]
