"""Snapshots of every age are read; anything else is refused in one line, and never executed."""

from __future__ import annotations

import copyreg
import pickle
import pickletools
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.memory.snapshots.build import report_snapshot
from pyrometer.memory.snapshots.difference import diff_snapshots
from pyrometer.memory.snapshots.read import read_snapshot
from pyrometer.memory.snapshots.reading import scan as scanning
from pyrometer.memory.snapshots.reading.tokens import tokens
from pyrometer.memory.snapshots.report import SnapshotReport
from pyrometer.record import from_json, to_json

MARKS = []


class Evil:
    """Leaves a mark when it is unpickled."""

    def __reduce__(self):
        return MARKS.append, ("executed",)


def refused(files, data, *needles):
    with pytest.raises(InputError) as caught:
        read_snapshot(files.write_bytes(data))
    text = str(caught.value)
    assert "\n" not in text
    for needle in needles:
        assert needle in text, text
    assert not MARKS


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("generation", list("0ABCDE"))
def test_every_generation_in_every_protocol(files, training, generation, protocol):
    recorder = training(files.recorder(), steps=1)
    snapshot = files.read(recorder.raw(generation), protocol)
    (device,) = snapshot.devices
    assert int(device.segments.size.sum()) == recorder.allocator.reserved_bytes
    assert len(device.events) == (0 if generation == "0" else len(recorder.events))
    assert int(device.blocks.size.sum()) == int(device.segments.size.sum())
    assert (device.blocks.requested[device.blocks.state == 2] == 0).all()
    assert bool(snapshot.settings) == (generation in "CDE")


def test_gzip_gives_the_same(files, training):
    raw = training(files.recorder()).raw()
    plain, packed = (read_snapshot(files.write(raw, packed=packed)) for packed in (False, True))
    assert report_snapshot(plain).devices == report_snapshot(packed).devices


@pytest.mark.parametrize("chunk", [100, 1000, 1 << 20])
def test_pieces_of_any_size_give_the_same(files, training, monkeypatch, chunk):
    raw = training(files.recorder()).raw()
    raw["device_traces"].append(raw["device_traces"][0][:1500])
    expected = read_snapshot(files.write(raw))
    monkeypatch.setattr(scanning, "CHUNK", chunk)
    snapshot = read_snapshot(files.write(raw))
    for a, b in zip(expected.devices, snapshot.devices, strict=True):
        for name, column in vars(a.events).items():
            assert np.array_equal(column, getattr(b.events, name)), name
    assert snapshot.stacks == expected.stacks


def test_call_stacks_are_kept_once(files, training):
    snapshot = files.read(training(files.recorder()).raw())
    assert len(snapshot.stacks) == len(set(snapshot.stacks)) <= len(files.STACKS) + 1


def test_equal_stacks_that_are_not_shared_in_the_file_are_one(files, training):
    raw = training(files.recorder()).raw()
    for event in raw["device_traces"][0]:
        event["frames"] = [dict(frame) for frame in event["frames"]]
    snapshot = files.read(raw)
    assert len(snapshot.stacks) == len(set(snapshot.stacks)) <= len(files.STACKS) + 1


def test_reading_does_not_need_torch(files, training):
    path = files.write(training(files.recorder(), steps=1).raw())
    code = (
        "import sys\nfrom pyrometer.memory.snapshots.read import read_snapshot\n"
        "from pyrometer.memory.snapshots.build import report_snapshot\n"
        f"report_snapshot(read_snapshot({str(path)!r}))\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_an_object_in_an_event_is_refused(files, training, protocol):
    raw = training(files.recorder(), steps=1).raw()
    raw["device_traces"][0][5]["frames"] = Evil()
    refused(files, pickle.dumps(raw, protocol), "would call a function", "nothing was executed")


HOSTILE = {
    "global": b"\x80\x02cos\nsystem\n.",
    "reduce": b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.",
    "stack global": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.",
    "inst": b"\x80\x02(X\x02\x00\x00\x00idios\nsystem\n.",
    "obj": b"\x80\x02(cos\nsystem\nX\x02\x00\x00\x00ido.",
    "build": b"\x80\x02}X\x01\x00\x00\x00aK\x01b.",
    "newobj": b"\x80\x02cbuiltins\nlist\n)\x81.",
    "newobj ex": b"\x80\x04cbuiltins\nlist\n)}\x92.",
    "ext1": b"\x80\x02\x82\x01.",
    "ext2": b"\x80\x02\x83\x01\x00.",
    "ext4": b"\x80\x02\x84\x01\x00\x00\x00.",
    "persid": b"\x80\x02Pnumber\n.",
    "binpersid": b"\x80\x02K\x01Q.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_could_run_code_is_refused_before_it_is_loaded(files, name):
    refused(files, HOSTILE[name], "nothing was executed")


def test_an_extension_code_that_was_used_before_is_refused(files):
    copyreg.add_extension(__name__, "Evil", 77)
    try:
        data = pickle.dumps(Evil, 2)
        assert data[2:4] == b"\x82\x4d"
        pickle.loads(data)  # now in the cache of copyreg, which find_class is not asked about
        refused(files, data, "EXT1")
    finally:
        copyreg.remove_extension(__name__, "Evil", 77)
        copyreg.clear_extension_cache()


BOMBS = {
    "memo number": b"\x80\x02]r\xff\xff\xff\x7f.",
    "nested tuples": b"\x80\x02)" + b"\x85" * 100_000 + b".",
    "tuples through the memo": b"\x80\x02K\x01\x85q\x00" + b"h\x00\x85q\x00" * 100 + b".",
    "nested marks": b"\x80\x02" + b"(" * 1000 + b".",
    "dense lists": b"\x80\x02" + b"]" * 2_000_000 + b".",
    "dense dictionaries": b"\x80\x02" + b"}" * 2_000_000 + b".",
    "text that is not there": b"\x80\x04\x8d" + (1 << 60).to_bytes(8, "little") + b"abc.",
    "long integer": b"\x80\x02\x8a\xff" + b"\x01" * 255 + b".",
    "longer integer": b"\x80\x02\x8b\x00\x00\x00\x7f" + b"\x01" * 100 + b".",
    "byte array": b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b".",
    "decimal text": b"\x80\x02L" + b"9" * 100_000 + b"L\n.",
    "set": b"\x80\x04\x8f(K\x01\x90.",
}


@pytest.mark.parametrize("name", BOMBS)
def test_memory_bombs_are_refused_before_they_are_loaded(files, name):
    refused(files, BOMBS[name])


SEGMENT = {"device": 0, "address": 1 << 40, "total_size": 2 << 20, "segment_type": "large"}


def segment(**more):
    return {**SEGMENT, **more}


def blocks(count=1, **more):
    return [
        {
            "size": 512,
            "state": "active_allocated",
            "requested_size": 500,
            **more,
            "address": (1 << 40) + 512 * i,
        }
        for i in range(count)
    ]


SHARED = {
    "a segment": [segment(blocks=blocks(9))] * 50,
    "the blocks of segments": [segment(blocks=shared) for shared in [blocks(9)] * 50],
    "a block": [segment(blocks=blocks() * 50)],
}


@pytest.mark.parametrize("name", SHARED)
def test_references_that_would_make_much_of_little_are_refused(files, name):
    refused(files, pickle.dumps({"segments": SHARED[name], "device_traces": []}), "again by reference")


def test_devices_that_share_their_events_by_reference_are_refused(files, training):
    raw = training(files.recorder(), steps=1).raw()
    raw["device_traces"] *= 3
    refused(files, pickle.dumps(raw), "again by reference")


def test_an_event_or_annotation_that_is_repeated_by_reference_counts_once(files, training):
    recorder = training(files.recorder(), steps=1)
    raw = recorder.raw()
    raw["device_traces"][0] += raw["device_traces"][0][-1:] * 5000
    raw["external_annotations"] = raw["external_annotations"] * 100
    snapshot = files.read(raw)
    assert len(snapshot.devices[0].events) < len(recorder.events) + 10
    assert len(snapshot.annotations) == len(recorder.annotations)


def test_long_stacks_of_few_frames_take_no_more_memory_than_their_references(files, monkeypatch):
    monkeypatch.setattr(scanning, "CHUNK", 1 << 14)
    frames = [{"name": f"f{i}", "filename": "a.py", "line": i} for i in range(2)]
    event = {"action": "alloc", "addr": 512, "size": 512, "stream": 0}
    events = [{**event, "frames": frames[:1] * 4000 + frames[1:] * i} for i in range(100)]
    path = files.write({"segments": [], "device_traces": [events]})
    tracemalloc.start()
    snapshot = read_snapshot(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(snapshot.stacks) == 101
    assert peak < 10 * path.stat().st_size  # a reference takes two bytes in the file, a pointer eight


def test_a_failed_request_may_be_of_any_size_and_others_not(files, training):
    raw = training(files.recorder(), steps=1).raw()
    trace = raw["device_traces"][0]
    trace.append(
        {"action": "oom", "size": 4 * 10**15, "device_free": 1 << 30, "stream": 0, "time_us": 2 * 10**15}
    )
    (failed,) = report_snapshot(files.read(raw)).oom
    assert failed.request_bytes == 4 * 10**15
    trace[7]["size"] = 4 * 10**15
    refused(files, pickle.dumps(raw), f"event 7 ({trace[7]['action']}) has 4000000000000000 bytes")


@pytest.mark.parametrize("device", [-3, 128, 10**9])
def test_devices_that_cannot_be_are_refused(files, device):
    refused(files, pickle.dumps([segment(device=device)]), f"device {device}; devices are 0 to 127")


def test_annotations_that_cannot_be_understood_are_left_out_with_a_note(files, training):
    recorder = training(files.recorder(), steps=1)
    raw = recorder.raw()
    wrong = [{"name": "a", "device": "x"}, {"name": "b", "time_us": None}, {"time_us": 1 << 70}, 5]
    raw["external_annotations"] = [*wrong, *raw["external_annotations"]]
    snapshot = files.read(raw)
    assert len(snapshot.annotations) == len(recorder.annotations)
    assert "4 annotations" in snapshot.notes[0]
    raw["external_annotations"] = 7
    assert "1 annotation" in files.read(raw).notes[0]


def test_blocks_that_are_larger_than_their_segment_are_noted(files):
    snapshot = files.read([segment(blocks=blocks(size=1 << 40))])
    assert "the blocks of 1 segment are together larger than the segment" in snapshot.notes[0]
    assert not files.read([segment(blocks=blocks(size=2 << 20))]).notes


def test_a_packed_file_is_used_to_its_last_byte(files, training):
    whole = files.write(training(files.recorder(), steps=1).raw(), packed=True).read_bytes()
    path = files.folder / "cut.pickle.gz"
    path.write_bytes(whole[:-12])  # without its checksum, and a little of what it holds
    snapshot = read_snapshot(path)
    assert len(snapshot.devices[0].events) > 0
    assert "cut off" in snapshot.notes[-1]
    path.write_bytes(whole[:12])
    with pytest.raises(InputError, match=r"cut off after 0 bytes of what is packed in it"):
        read_snapshot(path)


def test_a_huge_frame_is_only_a_hint(files, training):
    data = bytearray(pickle.dumps(training(files.recorder(), steps=1).raw(), 4))
    assert data[2] == 0x95
    data[3:11] = (1 << 62).to_bytes(8, "little")
    assert len(read_snapshot(files.write_bytes(bytes(data))).devices) == 1


def test_what_unpacks_to_absurdly_much_is_refused(files, monkeypatch):
    monkeypatch.setattr("pyrometer.memory.snapshots.reading.source._SMALL", 1 << 20)
    path = files.write_bytes(b"\x80\x02" + b"N" * (1 << 23) + b".", packed=True)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_snapshot(path)


@pytest.mark.parametrize(
    ("data", "needle"),
    [
        (b"", "empty"),
        (b"PK\x03\x04abc", "zip"),
        (b"<html>", "HTML"),
        (b'{"segments": []}', "JSON"),
        (b"hello world", "not a pickle"),
        (b"(dp0\nS'a'\np1\nI1\ns.", "protocol 2"),
        (b"\x80\x09N.", "protocol 9"),
        (pickle.dumps({"a": 1}), "no segments"),
        (pickle.dumps("text"), "not a memory snapshot"),
        (pickle.dumps({"segments": 5}), "not a memory snapshot"),
        (pickle.dumps({"segments": [5]}), "not a memory snapshot"),
        (pickle.dumps({"segments": [{}]}), "total_size"),
        (pickle.dumps({"segments": [], "device_traces": [[{"action": [], "addr": 1}]]}), "not a memory snapshot"),
        (pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1 << 70}]]}), "memory snapshot"),
        (b"\x80\x04K\x01a.", "damaged"),
        (b"\x80\x04h\x05.", "damaged"),
        (b"\x80\x04N.", "NoneType where a list belongs"),
        (pickle.dumps({"segments": [], "device_traces": [[] for _ in range(200)]}), "more than 128 devices"),
        (b"\x80\x04}]Ns.", "unhashable"),
    ],
)  # fmt: skip
def test_what_is_no_snapshot_is_refused_with_its_reason(files, data, needle):
    refused(files, data, needle)


def test_missing_files_and_folders(tmp_path):
    for path in (tmp_path / "none.pickle", tmp_path):
        with pytest.raises(InputError, match="snapshot"):
            read_snapshot(path)


def test_empty_snapshots_are_fine(files):
    for raw in ([], {"segments": [], "device_traces": []}, {"segments": [], "device_traces": [[], []]}):
        report = report_snapshot(files.read(raw))
        assert report.device is None
        assert report.peak_bytes == 0
        assert "empty" in report.notes[0]


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_was_cut_off_is_used_as_far_as_it_goes(files, training, packed):
    recorder = training(files.recorder(), steps=40)
    whole = pickle.dumps(recorder.raw(), 4)
    path = files.write_bytes(whole[: len(whole) * 2 // 3], packed=packed)
    if packed:
        path = files.write_bytes(path.read_bytes()[: path.stat().st_size * 9 // 10])
    snapshot = read_snapshot(path)
    (device,) = snapshot.devices
    assert "cut off" in snapshot.notes[-1]
    assert len(recorder.events) * 0.4 < len(device.events) < len(recorder.events)
    assert device.events.size.tolist() == [event["size"] for event in recorder.events][: len(device.events)]
    assert int(device.segments.size.sum()) == recorder.allocator.reserved_bytes
    report_snapshot(snapshot)


def test_a_file_cut_within_its_segments(files, training):
    whole = pickle.dumps(training(files.recorder()).raw(), 4)
    refused(files, whole[:60], "cut off")


def test_odd_events_are_left_out_and_counted(files, training):
    raw = training(files.recorder(), steps=1).raw()
    trace = raw["device_traces"][0]
    trace[3:3] = [5, {}, {"addr": 4}]
    snapshot = files.read(raw)
    assert "3 events" in snapshot.notes[0]


def test_a_plain_frame_is_no_stack_number(files, training):
    raw = training(files.recorder(), steps=1).raw()
    raw["device_traces"][0][0]["frames"] = [7, "text", None]
    assert files.read(raw).frames


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=5), inner, max_size=8),
    max_leaves=40,
)  # fmt: skip


@given(values=st.lists(plain, max_size=40), protocol=st.sampled_from([2, 3, 4, 5]), cut=st.integers(0, 3000))
def test_instructions_are_found_as_pickletools_finds_them(values, protocol, cut):
    data = pickle.dumps(values, protocol)
    expected = [position for _, _, position in pickletools.genops(data)]
    text = np.frombuffer(data + bytes(32), np.uint8)
    assert tokens(text, 0, len(data)).starts.tolist() == expected
    first = next((position for position in expected if position >= cut), len(data))
    assert tokens(text, first, len(data)).starts.tolist() == [p for p in expected if p >= first]


@given(data=st.data())
def test_damaged_files_are_refused_or_read_but_never_crash(files, training, data):
    raw = bytearray(
        pickle.dumps(training(files.recorder(), steps=1).raw(), data.draw(st.sampled_from([2, 4])))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    del raw[data.draw(st.integers(0, len(raw))) :]
    try:
        report = report_snapshot(read_snapshot(files.write_bytes(bytes(raw))))
        assert from_json(SnapshotReport, to_json(report)).peak_bytes == report.peak_bytes
        diff_snapshots(report, report)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
