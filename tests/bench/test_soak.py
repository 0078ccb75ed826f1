"""Long runs: windows, drift, and what is kept when they end early."""

from __future__ import annotations

import math
import sys
import time

import numpy as np
import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.bench.soak import MAX_KEPT, Reservoir, soak
from pyrometer.errors import InputError, UserProgramError


def noisy(step_s, *, growth_per_step=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return lambda i: step_s * (1 + growth_per_step * i) * math.exp(0.02 * abs(rng.normal()))


def test_a_steady_program_stays_steady(clock, timed):
    run = soak(timed(noisy(0.01)), 600, clock=clock)
    assert run.elapsed_s == pytest.approx(600, rel=0.05)
    assert 100 <= len(run.windows) <= 120
    assert run.latency.trend == "flat"
    assert run.num_steps == pytest.approx(60_000, rel=0.1)
    assert not run.interrupted
    assert [w for w in run.windows if not w.p50_s <= w.p99_s] == []


def test_a_program_that_grows_slower_is_found(clock, timed):
    run = soak(timed(noisy(0.01, growth_per_step=1e-5)), 600, clock=clock)
    assert run.latency.trend == "rising"
    assert run.latency.change == pytest.approx(0.6 / 1.3, rel=0.25)
    assert "drifting" in [caveat.code for caveat in run.caveats]


def test_windows_are_few_when_the_run_is_short_and_cover_it_without_gaps(clock, timed):
    run = soak(timed(noisy(0.01)), 3, clock=clock)
    assert len(run.windows) == 12
    for before, after in zip(run.windows, run.windows[1:], strict=False):
        assert before.end_s == after.start_s


def test_steps_longer_than_a_window_each_get_one(clock, timed):
    run = soak(timed(noisy(5.0)), 60, clock=clock)
    assert all(window.num_samples == 1 for window in run.windows)
    assert run.elapsed_s < 70
    assert len(run.windows) >= 10


def test_a_run_too_short_for_a_slope_says_so(clock, timed):
    run = soak(timed(noisy(5.0)), 12, clock=clock)
    assert run.latency is None
    assert "few_samples" in [caveat.code for caveat in run.caveats]


def interrupting(at: int, error: BaseException):
    def output(number: int) -> None:
        if number == at:
            raise error

    return output


def test_ctrl_c_keeps_what_was_measured(clock, timed):
    run = soak(timed(noisy(0.01), interrupting(5000, KeyboardInterrupt())), 600, clock=clock)
    assert run.interrupted
    assert 5 <= len(run.windows) <= 20
    assert "interrupted" in [caveat.code for caveat in run.caveats]


def test_a_failing_step_keeps_what_was_measured(clock, timed):
    run = soak(timed(noisy(0.01), interrupting(5000, ValueError("bad batch"))), 600, clock=clock)
    assert "ValueError: bad batch" in run.failure
    assert run.windows


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_ends_before_the_first_window_is_raised(clock, timed, error):
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else UserProgramError):
        soak(timed(noisy(0.01), interrupting(3, error())), 600, clock=clock)


@pytest.mark.parametrize("duration_s", [0, -1])
def test_a_duration_must_be_positive(clock, timed, duration_s):
    with pytest.raises(InputError, match="soak: got"):
        soak(timed(noisy(0.01)), duration_s, clock=clock)


def test_progress_is_told_and_never_beyond_the_end(clock, timed):
    shares = []
    soak(timed(noisy(0.01)), 60, clock=clock, progress=lambda share, _what: shares.append(share))
    assert shares[0] == 0.0
    assert max(shares) == pytest.approx(1.0, abs=0.05)


def test_samples_are_drawn_evenly_and_memory_stays_bounded():
    reservoir = Reservoir(1000)
    for start in range(0, 100_000, 500):
        reservoir.add([float(value) for value in range(start, start + 500)])
    assert len(reservoir.values) == 1000
    assert np.mean(reservoir.values) == pytest.approx(50_000, rel=0.06)
    assert sys.getsizeof(Reservoir(MAX_KEPT).values) < 100


def test_memory_that_is_kept_is_found_in_a_real_program(fresh_memory):
    kept = []

    class Hoarder(nn.Module):
        def forward(self, x):
            time.sleep(0.002)  # bounds what is hoarded
            kept.append(fresh_memory(2**16))
            return x

    run = soak(pm.Inference(Hoarder(), torch.zeros(4)), 4)
    kept.clear()
    assert run.memory.trend == "rising"
    assert run.memory.change > 2**20
    assert "memory_grows" in [caveat.code for caveat in run.caveats]
