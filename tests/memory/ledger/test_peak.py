"""Where a peak lies that is reached more than once."""

from __future__ import annotations

import pytest

from pyrometer.memory.ledger.profile_of import profile_of_log
from pyrometer.memory.prediction.lifetimes import Lifetimes, sizes_of
from pyrometer.memory.profile import MemoryProfile, ProcessLevels
from pyrometer.memory.recording.allocation import Allocation, AllocationLog, Origin


def log_of(*phases: tuple[str, int]) -> AllocationLog:
    """Of phases that each take so many bytes and give them back."""
    log = AllocationLog()
    for name, nbytes in phases:
        index = log.born(Allocation(nbytes, 0, Origin(f"aten.{name}", None, None), "float32"))
        log.died(index)
        log.end_phase(name, 0)
    return log


def profile(log: AllocationLog) -> MemoryProfile:
    return profile_of_log(log, name="p", device="cpu", source="", levels=ProcessLevels())


@pytest.mark.parametrize(
    ("phases", "phase"),
    [
        ([("setup", 8), ("forward", 8), ("rest", 8)], "forward"),
        ([("setup", 8), ("data", 8)], "setup"),
        ([("setup", 9), ("forward", 8)], "setup"),
        ([("forward", 8), ("backward", 8)], "forward"),
    ],
)
def test_on_ties_the_peak_is_where_work_was(phases: list[tuple[str, int]], phase: str) -> None:
    log = log_of(*phases)
    recorded = profile(log)
    assert recorded.peak_phase == phase
    assert recorded.by_operator == {f"aten.{phase}": recorded.peak_bytes}
    lives = Lifetimes.of(log, cuda=False)
    assert lives.phase_of(lives.peak(sizes_of(log)).event) == phase
