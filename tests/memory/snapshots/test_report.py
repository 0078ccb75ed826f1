"""A report says what held memory, why a request failed, and what the file does not tell."""

from __future__ import annotations

import json

import pytest

from pyrometer.memory.snapshots.build import report_snapshot
from pyrometer.memory.snapshots.report import SnapshotReport
from pyrometer.memory.snapshots.sites import site
from pyrometer.memory.snapshots.snapshot import Frame
from pyrometer.record import from_json, to_json

MIB = 1 << 20


def test_the_ledger_of_a_training_step(files, training):
    recorder = training(files.recorder())
    report = files.report(recorder)
    assert report.peak_bytes == recorder.allocator.peak_allocated_bytes
    assert report.peak_reserved_bytes == recorder.allocator.peak_reserved_bytes
    assert report.ledger_bytes == {
        "parameters": 32 * MIB,
        "optimizer": 64 * MIB,
        "gradients": 8 * MIB,
        "activations": 42 * MIB,
        "inputs": 2 * MIB,
        "temporaries": 12 * MIB,
    }
    assert report.devices[0].peak_phase == "backward"


def test_sites_are_the_users_lines_and_else_the_autograd_node(files, training):
    held = {one.site: one for one in files.report(training(files.recorder())).at_peak}
    assert held["/home/me/model.py:12"].category == "activations"
    assert held["/home/me/model.py:12"].operator == "aten.mm"
    assert held["MmBackward0"].bytes == 20 * MIB
    assert held["/home/me/train.py:33"].category == "optimizer"
    assert held["/home/me/model.py:5"].count == 8


@pytest.mark.parametrize(
    ("frames", "name"),
    [
        ([], "(no stack recorded)"),
        ([Frame("f", "/e/lib/python3.11/site-packages/torch/nn/functional.py", 3), Frame("g", "/e/lib/python3.11/site-packages/transformers/m.py", 9)], "/e/lib/python3.11/site-packages/transformers/m.py:9"),
        ([Frame("f", "/e/lib/python3.11/site-packages/torch/x.py", 3), Frame("r", "/e/lib/python3.11/threading.py", 5)], "/e/lib/python3.11/site-packages/torch/x.py:3"),
        ([Frame("at::_ops::empty::call(x)", "??", 0), Frame("at::_ops::mm::redispatch(x)", "??", 0)], "aten.mm"),
        ([Frame("torch::autograd::generated::BmmBackward0::apply(y)", "??", 0)], "BmmBackward0"),
        ([Frame("call", "/tmp/torchinductor_me/ab/cab.py", 50), Frame("step", "/home/me/t.py", 4)], "/home/me/t.py:4"),
        ([Frame("__libc_start_main", "??", 0)], "__libc_start_main"),
    ],
)  # fmt: skip
def test_names_of_stacks(frames, name):
    assert site(frames).name == name


def test_the_top_level_is_the_public_contract(files, training):
    report = files.report(training(files.recorder()))
    raw = json.loads(to_json(report))
    assert {
        "peak_bytes",
        "ledger_bytes",
        "timeline",
        "at_peak",
        "fragmentation",
        "oom",
        "advice",
        "devices",
    } <= set(raw)
    assert from_json(SnapshotReport, to_json(report)) == report


def test_of_several_devices_the_top_level_speaks_of_the_highest_peak(files):
    first, second = files.recorder(), files.recorder()
    first.alloc("a", 4 * MIB)
    second.alloc("b", 40 * MIB)
    segments = first.segments() + [segment | {"device": 2} for segment in second.segments()]
    report = files.report({"segments": segments, "device_traces": [first.events, [], second.events]})
    assert [device.device for device in report.devices] == [0, 2]
    assert (report.device, report.peak_bytes) == (2, 40 * MIB)
    assert report.devices[0].peak_bytes == 4 * MIB
    assert report.at_peak == report.devices[1].at_peak


def test_a_fragmented_request_says_how(files):
    recorder = files.recorder(capacity_mib=200)
    for i in range(40):
        recorder.alloc(f"a{i}", 5 * MIB, "forward")
    recorder.free(*[f"a{i}" for i in range(0, 40, 2)])
    assert not recorder.alloc("big", 64 * MIB)
    report = files.report(recorder)
    (failed,) = report.oom
    assert failed.request_bytes == 64 * MIB
    assert (failed.usable_free_bytes, failed.largest_free_bytes, failed.free_blocks) == (
        100 * MIB,
        5 * MIB,
        20,
    )
    assert failed.device_free_bytes == 0
    assert failed.sentence == (
        "the 64.0 MiB request failed with 100 MiB free in 20 blocks of at most 5.00 MiB, and 0 B left on the device"
    )
    assert failed.held[0].site == "/home/me/model.py:12"
    assert failed.held[0].bytes == 100 * MIB
    (at_oom,) = report.fragmentation.at_oom
    assert at_oom.inactive_split_bytes == 100 * MIB
    assert at_oom.external == 1 - 5 / 100


def test_free_memory_of_another_stream_is_not_usable(files):
    recorder = files.recorder(capacity_mib=100)
    recorder.alloc("a", 30 * MIB, stream=7)
    recorder.alloc("b", 20 * MIB, stream=7)
    recorder.alloc("keep", 2 * MIB, stream=7)
    recorder.free("a")
    recorder.alloc("small", 12 * MIB, stream=7)
    recorder.alloc("mine", 28 * MIB)
    assert not recorder.alloc("big", 40 * MIB)
    (failed,) = files.report(recorder).oom
    assert failed.usable_free_bytes == 0
    assert "lie in other pools and streams" in failed.sentence


def test_fragmentation_is_told_at_the_peak_and_not_only_at_the_end(files):
    recorder = files.recorder()
    for i in range(32):
        recorder.alloc(f"a{i}", 5 * MIB)
    recorder.free(*[f"a{i}" for i in range(32) if i % 4])
    report = files.report(recorder)
    assert report.fragmentation.at_peak.unused == 0
    assert report.fragmentation.at_end.unused == 0.75
    assert report.fragmentation.at_end.inactive_split_bytes == 120 * MIB
    assert report.advice == []


def test_pending_frees_are_kept_apart(files):
    recorder = files.recorder()
    recorder.alloc("a", 16 * MIB)
    recorder.alloc("b", 16 * MIB)
    recorder.free("a", pending=True)
    recorder.live.pop("a")
    end = files.report(recorder).fragmentation.at_end
    assert (end.allocated_bytes, end.pending_free_bytes) == (16 * MIB, 16 * MIB)


def test_rounding_is_what_nobody_asked_for(files):
    recorder = files.recorder("roundup_power2_divisions:2")
    recorder.alloc("a", 33 * MIB)
    peak = files.report(recorder).fragmentation.at_peak
    assert peak.rounding_bytes == 15 * MIB


def test_retries_and_calls_of_empty_cache_are_told_apart(files):
    recorder = files.recorder(capacity_mib=100)
    recorder.alloc("a", 60 * MIB)
    recorder.free("a")
    recorder.empty_cache()
    recorder.alloc("small", 12 * MIB)  # 72 MiB would have been fine: more was held at another time
    recorder.alloc("a", 60 * MIB)
    recorder.free("a")
    recorder.alloc("b", 80 * MIB)  # the device refuses; 60 MiB are given back first
    (device,) = files.report(recorder).devices
    assert [release.reason for release in device.releases] == ["empty_cache", "retry"]
    assert device.retries == 1
    assert device.capacity_bytes == 152 * MIB - 1
    raw = recorder.raw()
    for event in raw["device_traces"][0]:
        event["frames"] = []
    (device,) = files.report(raw).devices
    assert [release.reason for release in device.releases] == ["empty_cache", "retry"]


def test_a_history_that_begins_in_the_middle_says_so(files, training):
    recorder = training(files.recorder())
    report = files.report(recorder.raw(keep_last=100))
    assert any("begins in the middle" in note for note in report.devices[0].notes)
    assert report.devices[0].at_end


def test_a_file_without_history_tells_the_end(files, training):
    report = files.report(training(files.recorder()).raw("0"))
    assert report.peak_bytes == 96 * MIB
    assert any("no history" in note for note in report.notes)
    assert report.timeline.total_bytes == []


def test_categories_of_the_profiler_win(files):
    events = [
        {
            "action": "alloc",
            "addr": 4096,
            "size": 5 * MIB,
            "stream": 0,
            "frames": [],
            "category": "activation",
        },
        {"action": "alloc", "addr": 2**30, "size": MIB, "stream": 0, "frames": [], "category": "unknown"},
        {"action": "free", "addr": 4096, "size": 5 * MIB, "stream": 0, "frames": []},
    ]
    segment = {"device": 0, "address": 4096, "total_size": 2**30 + MIB, "stream": 0, "blocks": []}
    report = files.report({"segments": [segment], "device_traces": [events]})
    assert report.ledger_bytes == {"activations": 5 * MIB, "unknown": MIB}


def test_settings_and_their_problems(files):
    raw = files.recorder().raw()
    raw["segments"] = [{"device": 0, "address": 4096, "total_size": 2 * MIB, "stream": 0, "blocks": []}]
    raw["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segment:True"
    settings = report_snapshot(files.read(raw)).settings
    assert settings.text == "expandable_segment:True"
    assert "did you mean expandable_segments" in settings.problems[0]
    assert settings.values["max_split_size"] == -1


def test_the_timeline_keeps_every_peak(files):
    recorder = files.recorder()
    for i in range(6000):
        recorder.alloc("a", (1 + i % 7) * MIB)
        recorder.free("a")
    recorder.alloc("spike", 500 * MIB)
    recorder.free("spike")
    for i in range(2000):
        recorder.alloc("a", (1 + i % 7) * MIB)
        recorder.free("a")
    timeline = files.report(recorder).timeline
    count = len(timeline.event)
    assert count < 6000
    assert max(timeline.total_bytes) == 500 * MIB
    assert max(timeline.reserved_bytes) == recorder.allocator.peak_reserved_bytes
    assert {len(timeline.time_s), len(timeline.total_bytes), len(timeline.reserved_bytes)} == {count}
    assert sum(column[5] for column in timeline.category_bytes.values()) == timeline.total_bytes[5]
    assert timeline.event == sorted(set(timeline.event))


def test_phases_come_from_stacks_and_annotations(files, training):
    recorder = training(files.recorder())
    timeline = files.report(recorder).timeline
    assert [span.name for span in timeline.phases][-3:] == ["forward", "backward", "optimizer"]
    raw = recorder.raw()
    for event in raw["device_traces"][0]:
        event["frames"] = []
    recorder.annotate("late", "START")
    report = files.report(raw)
    assert report.timeline.phases == []
    assert report.devices[0].peak_phase is None


def test_state_that_lives_when_the_file_ends_in_the_optimizer_is_state(files):
    """As of an optimizer that makes its state in its step, and is the last that the file tells of."""
    recorder = files.recorder()
    recorder.alloc("weights", 8 * MIB, "parameters")
    recorder.alloc("scratch", 4 * MIB, "optimizer")
    recorder.alloc("moments", 16 * MIB, "optimizer")
    recorder.free("scratch")
    ledger = files.report(recorder).ledger_bytes
    assert (ledger["optimizer"], ledger["temporaries"]) == (16 * MIB, 4 * MIB)


def test_what_is_in_use_when_a_request_of_the_optimizer_fails_is_not_called_state(files):
    recorder = files.recorder(capacity_mib=64)
    recorder.alloc("weights", 8 * MIB, "parameters")
    recorder.alloc("square roots", 40 * MIB, "optimizer")
    assert not recorder.alloc("too much", 40 * MIB, "optimizer")
    ledger = files.report(recorder).ledger_bytes
    assert (ledger.get("optimizer", 0), ledger["temporaries"]) == (0, 40 * MIB)


def test_a_peak_that_is_reached_twice_lies_where_the_program_worked(files):
    recorder = files.recorder()
    recorder.alloc("loaded", 16 * MIB, "user")
    recorder.free("loaded")
    recorder.alloc("computed", 16 * MIB, "forward")
    report = files.report(recorder)
    assert report.devices[0].peak_phase == "forward"
