"""Checkpoints are whole or they do not count."""

from __future__ import annotations

import json
import random

import pytest
import torch

from pyrometer.errors import InputError
from pyrometer.tuning.loop import checkpoints
from pyrometer.tuning.loop.checkpoints import CheckpointFolder


@pytest.fixture
def folder(tmp_path):
    folder = CheckpointFolder(tmp_path / "made" / "later", keep=3)
    for step in (1, 2, 3):
        folder.save(step, {"step": step, "x": torch.full((1000,), float(step))})
    return folder


def newest(folder):
    return next(folder.sound_steps(), None)


def test_the_last_few_are_kept_and_read_back(folder):
    note = folder.save(10, {"step": 10})
    assert list(folder.sound_steps()) == [10, 3, 2]
    assert folder.load(3)["x"].unique().tolist() == [3.0]
    assert note.num_bytes > 0
    assert sorted(place.name for place in folder.folder.iterdir()) == [f"step-{n:08d}" for n in (2, 3, 10)]


def truncated(place):
    raw = (place / "state.pt").read_bytes()
    (place / "state.pt").write_bytes(raw[: len(raw) // 2])


def flipped(place):
    raw = bytearray((place / "state.pt").read_bytes())
    raw[random.Random(0).randrange(len(raw))] ^= 1
    (place / "state.pt").write_bytes(raw)


def without_state(place):
    (place / "state.pt").unlink()


def without_manifest(place):
    (place / "manifest.json").unlink()


def torn_manifest(place):
    (place / "manifest.json").write_text("{")


DAMAGES = [truncated, flipped, without_state, without_manifest, torn_manifest]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_one_is_passed_over_said_and_replaced(damage, folder):
    damage(folder.folder / "step-00000003")
    assert newest(folder) == 2
    assert len(folder.rejected) == 1
    assert "step-00000003" in folder.rejected[0]
    folder.save(3, {"step": 3})
    assert newest(folder) == 3


def test_where_all_are_damaged_there_is_none(folder):
    for place in folder.folder.iterdir():
        flipped(place)
    assert newest(folder) is None
    assert len(folder.rejected) == 3


@pytest.mark.parametrize("failing", ["sync", "sha256_of", "to_json"])
def test_a_write_that_fails_leaves_those_before_and_nothing_half(failing, folder, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(checkpoints, failing, fail)
    with pytest.raises(OSError, match="disk full"):
        folder.save(4, {"step": 4})
    monkeypatch.undo()
    assert list(folder.sound_steps()) == [3, 2, 1]
    assert not folder.rejected
    assert len(list(folder.folder.iterdir())) == 3


def test_what_a_killed_process_left_half_written_does_not_count_and_is_deleted(folder):
    left = folder.folder / ".step-00000004.partial"
    left.mkdir()
    (left / "state.pt").write_bytes(b"half")
    assert newest(folder) == 3
    folder.save(5, {"step": 5})
    assert not left.exists()


def test_state_that_would_run_code_is_refused_at_once(folder):
    with pytest.raises(InputError, match=r"holds .*Random.*, which torch.load\(weights_only=True\) refuses"):
        folder.save(4, {"user": random.Random(0)})
    assert newest(folder) == 3


def test_the_manifest_says_what_is_there(folder):
    manifest = json.loads((folder.folder / "step-00000002" / "manifest.json").read_text())
    assert manifest["step"] == 2
    assert manifest["torch"] == str(torch.__version__)
    assert len(manifest["sha256"]) == 64


def test_bad_arguments_are_refused(tmp_path):
    with pytest.raises(InputError, match="keep: got 0"):
        CheckpointFolder(tmp_path, 0)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file is a file; it must be a folder"):
        CheckpointFolder(tmp_path / "file", 1)
