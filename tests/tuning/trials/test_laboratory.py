"""What a laboratory leaves behind."""

from __future__ import annotations

from pyrometer.tuning.levers.choice import LeverChoice, key_of
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import Limits
from pyrometer.tuning.trials.laboratory import Laboratory

LAYOUT = LeverChoice(lever="channels_last")


def test_what_trials_wrote_is_removed_and_what_is_kept_stays(tmp_path):
    laboratory = Laboratory(protocol.Source(), tmp_path, Limits())
    laboratory.find_ready((LAYOUT,), {})
    for place in (key_of((LAYOUT,)) + "/cache", "openvino"):
        (tmp_path / place).mkdir(parents=True)
    for name in ("reference.pt", "journal.jsonl"):
        (tmp_path / name).write_bytes(b"")
    laboratory.forget_trials()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.jsonl", "openvino"]
