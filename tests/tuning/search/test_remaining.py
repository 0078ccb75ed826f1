"""What the hardware leaves is told from limits that hold, and not told where a step outruns them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyrometer.tuning.search import remaining
from pyrometer.tuning.search.remaining import Floor, FloorRequest, floor_of, left_of
from pyrometer.tuning.trials.protocol import Source
from pyrometer.workload.target import parse_target


def test_the_nearer_limit_says_what_is_left():
    floor = Floor(flop=1.0, moved_bytes=1, arithmetic_s=2e-3, transfer_s=1e-3)
    assert left_of(floor, 8e-3) == "at 25 % of this machine's arithmetic limit: 4.0× is the most left"


def test_a_step_that_outruns_the_measured_peak_shows_that_the_peak_is_not_known():
    said = left_of(Floor(flop=1.0, moved_bytes=1, arithmetic_s=2e-3), 1e-3)
    assert said.startswith(
        "what the hardware leaves is not known: the step is 2.0× faster than the arithmetic"
    )


def peaks(flop_per_s, memory, cache):
    def peak(best):
        return SimpleNamespace(best=best)

    return SimpleNamespace(
        device="cpu",
        matmul_flop_per_s={"float32": peak(flop_per_s)},
        copy_bytes_per_s={"memory": peak(memory), "l3": peak(cache)},
    )


@pytest.mark.parametrize("starved", [1e9, 1e12])
def test_threads_that_starve_each_other_do_not_lower_the_limit(programs, monkeypatch, starved):
    measured = iter([peaks(starved, 1e9, 1e10), peaks(1e11, 1e9, 1e10)])
    monkeypatch.setattr(remaining, "measure_peaks", lambda *_, **__: next(measured))
    monkeypatch.setattr(remaining.torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(remaining.torch, "set_num_threads", lambda num: None)
    source = Source(spec=parse_target(f"{programs}:mlp").spec)
    floor = floor_of(FloorRequest(source=source, dtype="float32"))
    assert floor.flop / floor.arithmetic_s == pytest.approx(max(starved, 2e11))
    assert floor.moved_bytes / floor.transfer_s == pytest.approx(2e10)  # it fits into the cache
