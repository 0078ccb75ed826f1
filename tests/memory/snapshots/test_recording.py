"""Recording is bounded, ends whatever happens, and writes a file that reads."""

from __future__ import annotations

import types

import pytest
import torch

from pyrometer.errors import InputError
from pyrometer.memory.private import cuda_snapshot
from pyrometer.memory.snapshots.read import read_snapshot
from pyrometer.memory.snapshots.recording import record_snapshot

MIB = 1 << 20


class Device:
    """Stands in for `torch.cuda.memory`, with a program on the simulated allocator behind it."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.calls = []
        self.observers = []
        self.recording = False

    def _record_memory_history(
        self, enabled="all", *, context="all", stacks="all", max_entries=0, clear_history=False
    ):
        self.recording = enabled is not None
        self.calls.append((enabled, max_entries, stacks, clear_history))

    def _snapshot(self, device=None):
        self.calls.append("snapshot")
        return self.recorder.raw()


@pytest.fixture
def device(files, monkeypatch):
    """A CUDA device that is none."""
    fake = Device(files.recorder())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "memory", fake)
    monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", lambda: fake.recording, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_attach_out_of_memory_observer", fake.observers.append, raising=False)
    monkeypatch.setattr(
        cuda_snapshot, "_attached", types.SimpleNamespace(is_set=lambda: bool(fake.observers), set=int)
    )
    return fake


def test_a_machine_without_device_is_told_what_to_use(tmp_path):
    if torch.cuda.is_available() or torch.xpu.is_available():
        pytest.skip("there is a device")
    with pytest.raises(InputError, match=r"pm\.profile_memory"), record_snapshot(tmp_path / "a.pickle"):
        raise AssertionError


def test_a_region_is_recorded_and_written(device, tmp_path):
    path = tmp_path / "a.pickle"
    with record_snapshot(path, max_entries=500, stacks="python") as target:
        assert target == path
        assert device.recording
        device.recorder.alloc("a", 30 * MIB)
    assert device.calls == [("all", 500, "python", True), "snapshot", (None, 0, "all", False)]
    assert len(read_snapshot(path).devices[0].events) == 2
    assert [entry.name for entry in tmp_path.iterdir() if entry.suffix == ".partial"] == []


def test_an_exception_ends_recording_and_is_passed_on(device, tmp_path):
    with pytest.raises(KeyError), record_snapshot(tmp_path / "a.pickle"):
        raise KeyError
    assert not device.recording
    assert read_snapshot(tmp_path / "a.pickle").devices == []


def test_an_oom_is_taken_at_its_instant(device, tmp_path):
    def fails():
        device.recorder.alloc("a", 30 * MIB)
        device.observers[0](0, 50 * MIB, 80 * MIB, 2 * MIB)
        device.recorder.free("a")
        raise RuntimeError

    with pytest.raises(RuntimeError), record_snapshot(tmp_path / "a.pickle"):
        fails()
    (snapshot,) = read_snapshot(tmp_path / "a.pickle").devices
    assert len(snapshot.events) == 2
    device.observers[0](0, 1, 1, 1)  # nobody listens any longer
    assert device.calls.count("snapshot") == 1


def test_one_observer_serves_all_regions(device, tmp_path):
    for i in range(3):
        with record_snapshot(tmp_path / f"{i}.pickle"):
            pass
    assert len(device.observers) == 1
    with record_snapshot(tmp_path / "none.pickle", on_oom=False):
        device.observers[0](0, 1, 1, 1)
    assert device.calls.count("snapshot") == 4


def test_a_recording_of_the_users_is_left_alone(device, tmp_path):
    device.recording = True
    with pytest.raises(InputError, match="already"), record_snapshot(tmp_path / "a.pickle"):
        raise AssertionError
    assert device.calls == []


def test_a_dump_that_fails_ends_recording_and_leaves_no_file(device, tmp_path, monkeypatch):
    def broken(device=None):
        raise RuntimeError("device lost")

    monkeypatch.setattr(device, "_snapshot", broken)
    with pytest.raises(RuntimeError, match="device lost"), record_snapshot(tmp_path / "a.pickle"):
        pass
    assert not device.recording
    assert list(tmp_path.glob("*.partial")) == [] == list(tmp_path.glob("a.pickle"))


@pytest.mark.parametrize(
    ("path", "entries", "needle"), [("a.pickle", 0, "max_entries"), ("no/a.pickle", 5, "folder")]
)
def test_arguments_are_checked_first(device, tmp_path, path, entries, needle):
    with pytest.raises(InputError, match=needle), record_snapshot(tmp_path / path, max_entries=entries):
        raise AssertionError
    assert device.calls == []
